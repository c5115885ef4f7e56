// Operations of MXNet's own store that a worker has begun. Nobody can ask the store how far they
// are, nor end them; so they are counted here.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "support/clock.h"

namespace kvstore_ext {

// Pulls and commands: a push ends when the pull that follows it does. Thread-safe.
class StockOperations {
 public:
  // A gradient is to be pushed once it is computed, for which pulls that follow wait, too.
  void AwaitGradient() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++gradients_;
  }

  // It is computed, or will never be.
  void GradientEnded() {
    std::lock_guard<std::mutex> lock(mutex_);
    --gradients_;
    latest_ = Now();
  }

  // `what` it is, for messages. Returns its number.
  int Begin(const std::string& what) {
    std::lock_guard<std::mutex> lock(mutex_);
    open_[++count_] = {what, Now()};
    return count_;
  }

  void End(int number) {
    std::lock_guard<std::mutex> lock(mutex_);
    open_.erase(number);
    latest_ = Now();
  }

  int open() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(open_.size());
  }

  // What has waited for longer than so many seconds, during which none has come forward; empty if
  // nothing has.
  std::string Overdue(double seconds) const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (gradients_ > 0 || open_.empty()) return "";
    const Operation& first = open_.begin()->second;
    return Now() - std::max(first.since, latest_) > seconds ? first.what : "";
  }

 private:
  struct Operation {
    std::string what;
    double since = 0;
  };

  mutable std::mutex mutex_;  // of all below
  int gradients_ = 0;         // that are not computed yet
  int count_ = 0;
  std::map<int, Operation> open_;  // by number
  double latest_ = 0;              // when anything ended
};

}  // namespace kvstore_ext
