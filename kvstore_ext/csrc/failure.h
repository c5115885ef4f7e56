// Why a process can no longer train, told once and kept.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

namespace kvstore_ext {

// Seconds on a clock that never jumps.
inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline std::string Seconds(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

inline std::string Ranks(const std::set<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// Ranks below `count` that are not present.
inline std::set<int> Missing(const std::set<int>& present, int count) {
  std::set<int> missing;
  for (int rank = 0; rank < count; ++rank) {
    if (present.count(rank) == 0) missing.insert(rank);
  }
  return missing;
}

// The first reason wins, since those that follow are its consequences. Thread-safe.
class Failure {
 public:
  // Returns whether this reason was the first.
  bool Set(const std::string& reason) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!reason_.empty()) return false;
      reason_ = reason;
    }
    changed_.notify_all();
    return true;
  }

  // The reason, or an empty string while all is well.
  std::string reason() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return reason_;
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

}  // namespace kvstore_ext
