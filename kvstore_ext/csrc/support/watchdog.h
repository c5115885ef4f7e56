// Calls a check at intervals, so that nothing waits for ever.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace kvstore_ext {

class Watchdog {
 public:
  using Failed = std::function<void(const std::exception&)>;

  // The check runs on a thread of its own, every `seconds`, until Stop or destruction. `failed`
  // hears there of what it throws.
  void Start(double seconds, std::function<void()> check, Failed failed);

  // After its return the check runs no more. Must not be called from the check.
  void Stop();

  // As Stop, but waits so many seconds at most: a check that runs may be sending, which nothing but
  // the end of what it sends through wakes.
  void StopWithin(double seconds);

  ~Watchdog() { Stop(); }

 private:
  void Run(double seconds);
  void Check() const {
    try {
      check_();
    } catch (const std::exception& error) {
      failed_(error);
    }
  }

  std::function<void()> check_;
  Failed failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace kvstore_ext
