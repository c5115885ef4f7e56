// What happened on the lane, in order: for tests of overlap and for looking at a training run.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "support/clock.h"

namespace kvstore_ext {

struct Event {
  double time;       // seconds, on the process's steady clock
  std::string what;  // "ready": the gradient is; "send", "result": a slice; "done": the key is
  uint64_t key;
  uint32_t slice;
  uint64_t round;
  int priority;
};

// Off, it costs one load. Thread-safe.
class Trace {
 public:
  void Enable(bool on) { on_ = on; }

  void Record(const char* what, uint64_t key, uint32_t slice, uint64_t round, int priority) {
    if (!on_) return;
    std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back({Now(), what, key, slice, round, priority});
  }

  // What was recorded since the last call.
  std::vector<Event> Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Event> taken;
    taken.swap(events_);
    return taken;
  }

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace kvstore_ext
