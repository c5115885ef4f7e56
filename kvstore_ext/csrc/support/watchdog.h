// Calls a check at intervals, so that nothing waits for ever.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kvstore_ext {

class Watchdog {
 public:
  // The check runs on a thread of its own, every `seconds`, until Stop or destruction.
  void Start(double seconds, std::function<void()> check) {
    thread_ = std::thread([this, seconds, check = std::move(check)] {
      std::unique_lock<std::mutex> lock(mutex_);
      while (!stop_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [this] { return stopping_; })) {
        lock.unlock();
        check();
        lock.lock();
      }
    });
  }

  // After its return the check runs no more. Must not be called from the check.
  void Stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  ~Watchdog() { Stop(); }

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kvstore_ext
