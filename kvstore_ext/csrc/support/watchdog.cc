#include "support/watchdog.h"

#include <chrono>
#include <utility>

namespace kvstore_ext {

void Watchdog::Start(double seconds, std::function<void()> check, Failed failed) {
  check_ = std::move(check);
  failed_ = std::move(failed);
  thread_ = std::thread([this, seconds] { Run(seconds); });
}

void Watchdog::Run(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_to_stop = [this] { return stopping_; };
  while (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), is_to_stop)) {
    lock.unlock();
    Check();
    lock.lock();
  }
  stopped_ = true;
  changed_.notify_all();
}

void Watchdog::StopWithin(double seconds) {
  if (!thread_.joinable()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return stopped_; });
}

void Watchdog::Stop() {
  StopWithin(0);
  if (thread_.joinable()) thread_.join();
}

}  // namespace kvstore_ext
