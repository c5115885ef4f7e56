#include "support/watchdog.h"

#include <chrono>
#include <utility>

namespace kvstore_ext {

void Watchdog::Start(double seconds, std::function<void()> check) {
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

void Watchdog::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace kvstore_ext
