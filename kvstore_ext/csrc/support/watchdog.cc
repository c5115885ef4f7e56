#include "support/watchdog.h"

#include <chrono>
#include <utility>

namespace kvstore_ext {

void Watchdog::Start(double seconds, std::function<void()> check, Failed failed) {
  check_ = std::move(check);
  failed_ = std::move(failed);
  thread_ = std::thread([this, seconds] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return stopping_; })) {
      lock.unlock();
      Check();
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
