// What a process knows of whether another one lives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace kvstore_ext {

// When a peer was last heard of, and what excuses its silence: its signs of life are stuck behind
// what MXNet's own store sends on the same connection. Times are Now()'s. Thread-safe.
class SignsOfLife {
 public:
  explicit SignsOfLife(double now) : heard_(now) {}

  // Something has come from the peer. It is all that it had sent before, so what is still to come
  // excuses the next silence only.
  void Heard(double now) {
    std::lock_guard<std::mutex> lock(mutex_);
    heard_ = now;
    excused_ = coming_;
  }

  // The peer says how many bytes it is sending through MXNet's own store, until it says otherwise.
  // It numbers what it says, from 1 on: of messages that wait ps-lite takes the last one first.
  void Announced(uint64_t bytes, uint32_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (static_cast<int32_t>(number - last_announcement_) <= 0) return;
    last_announcement_ = number;
    announced_ = bytes;
  }

  // So many more bytes come from the peer through MXNet's own store, or, negative, no longer do:
  // a sign of life may still be behind the last of them. Those that are asked for later than a sign
  // should have come would come behind that sign, so they do not excuse that it is late.
  void AwaitBytes(int64_t bytes, double now) {
    std::lock_guard<std::mutex> lock(mutex_);
    coming_ += bytes;
    if (now - heard_ < kLate) excused_ = std::max(excused_, coming_);
  }

  // For how many seconds the peer has been silent without an excuse, at this time, for somebody who
  // listens since `awake`; fewer than 0 while it has one.
  double Silence(double now, double awake = 0) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const double bytes = static_cast<double>(announced_) + static_cast<double>(excused_);
    return now - std::max(heard_, awake) - bytes / kSlowest;
  }

 private:
  // Seconds after which the next sign of life is late: those are sent once a second, or more often.
  static constexpr double kLate = 3;
  // Bytes a second that MXNet's own store moves between two processes on the slowest network that
  // we expect, where several share it.
  static constexpr double kSlowest = 1e6;

  mutable std::mutex mutex_;  // of all below
  double heard_;
  uint64_t announced_ = 0;
  uint32_t last_announcement_ = 0;
  int64_t coming_ = 0;
  int64_t excused_ = 0;  // most that were coming since the peer was heard of
};

}  // namespace kvstore_ext
