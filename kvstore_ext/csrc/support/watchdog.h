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
  void Start(double seconds, std::function<void()> check);

  // After its return the check runs no more. Must not be called from the check.
  void Stop();

  ~Watchdog() { Stop(); }

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kvstore_ext
