// Why a process can no longer train, told once and kept.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>

#include "support/printable.h"

namespace kvstore_ext {

// The first reason wins, since those that follow are its consequences. It may be another process's,
// and is kept as people may see it. Thread-safe.
class Failure {
 public:
  // Returns whether this reason was the first.
  bool Set(const std::string& reason) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!reason_.empty()) return false;
      reason_ = Printable(reason);
    }
    changed_.notify_all();
    return true;
  }

  // The reason, or an empty string while all is well.
  std::string reason() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return reason_;
  }

  // Throws std::runtime_error with the reason, if there is one.
  void ThrowIfSet() const {
    const std::string known = reason();
    if (!known.empty()) throw std::runtime_error(known);
  }

  // Waits for a failure; returns the reason, or an empty string once the time is over or nobody
  // waits any more.
  std::string Wait(double seconds) const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [this] { return !reason_.empty() || waits_ended_; });
    return reason_;
  }

  // Has Wait return at once, now and later.
  void EndWaits() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      waits_ended_ = true;
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string reason_;
  bool waits_ended_ = false;
};

// Does what is left to do for others once all has failed. Where that fails, too, what follows is
// done all the same.
template <typename Action>
void Attempt(const Action& action) {
  try {
    action();
  } catch (const std::exception&) {
  }
}

}  // namespace kvstore_ext
