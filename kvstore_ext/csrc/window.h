// How many bytes a peer may be sent before it acknowledges: enough to keep the link busy, no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace kvstore_ext {

// Advises a window from a link's bandwidth and round-trip time: a little over one slice, so that
// the next one leaves when the last arrives, plus what the link holds during a round trip. On a
// slow near link that is stop-and-wait, which keeps priorities best; on a fast or long one it grows
// with bandwidth times delay.
//
// The round trip is the shortest seen of late, since everything that disturbs it makes it longer.
// What a slice takes is an average: the shortest would be one that a burst allowance let through at
// once. Not thread-safe.
class WindowEstimator {
 public:
  // fixed_bytes > 0 turns the estimate off.
  WindowEstimator(size_t slice_bytes, size_t fixed_bytes)
      : slice_bytes_(slice_bytes), fixed_bytes_(fixed_bytes) {}

  // A message without data, sent while nothing else was under way, was answered after so long.
  void RoundTrip(double seconds) {
    round_trip_ = round_trip_ == 0 ? seconds : std::min(round_trip_ * kFade, seconds);
  }

  // bytes were handed to the network at a time in seconds.
  void Sent(size_t bytes, double now) {
    sent_.push_back({bytes, now, outstanding_ <= slice_bytes_ / 16});
    outstanding_ += bytes;
  }

  // The peer acknowledged further bytes, in the order in which they were sent.
  void Acknowledged(size_t bytes, double now) {
    credit_ += bytes;
    while (!sent_.empty() && sent_.front().bytes <= credit_) {
      const Flight flight = sent_.front();
      sent_.pop_front();
      credit_ -= flight.bytes;
      outstanding_ -= flight.bytes;
      if (flight.alone && flight.bytes >= slice_bytes_ / 2) Observe(flight, now - flight.time);
    }
  }

  size_t window_bytes() const {
    if (fixed_bytes_ > 0) return fixed_bytes_;
    const double on_the_way = transfer_ == 0 ? 0 : (round_trip_ + kWakeUp) / transfer_;
    return static_cast<size_t>((1.25 + std::min(on_the_way, kMostSlices)) * slice_bytes_);
  }

 private:
  struct Flight {
    size_t bytes;
    double time;
    bool alone;  // next to nothing else was under way, so its time says something of the link
  };

  void Observe(const Flight& flight, double seconds) {
    if (round_trip_ == 0) return;
    const double beyond = std::max(seconds - round_trip_, seconds / kMostSlices);
    const double transfer = beyond * slice_bytes_ / flight.bytes;
    transfer_ = transfer_ == 0 ? transfer : transfer_ + kNewest * (transfer - transfer_);
  }

  // Seconds by which a busy machine's threads come late to an acknowledgement: most of a slice's
  // time on a fast link, where more on the way costs priorities nothing, and next to none on a slow
  // one.
  static constexpr double kWakeUp = 0.0002;
  static constexpr double kFade = 1.01;      // a ping
  static constexpr double kNewest = 0.1;     // share of the average
  static constexpr double kMostSlices = 64;  // beyond that, priorities would be worth nothing

  const size_t slice_bytes_;
  const size_t fixed_bytes_;
  std::deque<Flight> sent_;
  size_t outstanding_ = 0;
  size_t credit_ = 0;
  double round_trip_ = 0;  // seconds; 0: not known yet
  double transfer_ = 0;    // seconds that a slice takes beyond a round trip; 0: not known yet
};

}  // namespace kvstore_ext
