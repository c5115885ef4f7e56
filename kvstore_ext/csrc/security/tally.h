// Counts what is told of now and then, lest it fill the log.
#pragma once

#include <atomic>
#include <cstdint>

#include "support/clock.h"

namespace kvstore_ext {

class Tally {
 public:
  // Tells every so many seconds at most.
  explicit Tally(double seconds = 60.0) : seconds_(seconds) {}

  // Counts one more. Returns how many there have been since it last told, if it is to tell now, and
  // 0 otherwise. On one thread; `total` may be asked on any.
  uint64_t Add() {
    const uint64_t total = ++total_;
    const double now = Now();
    if (now < next_) return 0;
    next_ = now + seconds_;
    const uint64_t since = total - told_;
    told_ = total;
    return since;
  }

  uint64_t total() const { return total_; }

 private:
  const double seconds_;
  std::atomic<uint64_t> total_{0};
  uint64_t told_ = 0;
  double next_ = 0.0;  // when it may tell again, by Now()
};

}  // namespace kvstore_ext
