// How many bytes a peer may be sent before it acknowledges: enough to keep the link busy, no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace kvstore_ext {

// Follows a link's bandwidth and round-trip time by the acknowledgements that come back, and
// advises a window: a little over one slice, so that the next one leaves when the last arrives, plus
// what the link holds during a round trip. On a slow near link that is stop-and-wait, which keeps
// priorities best; on a fast or long one it grows with bandwidth times delay. Not thread-safe.
class WindowEstimator {
 public:
  // fixed_bytes > 0 turns the estimate off.
  WindowEstimator(size_t slice_bytes, size_t fixed_bytes)
      : slice_bytes_(slice_bytes), fixed_bytes_(fixed_bytes) {}

  // bytes were handed to the network at a time in seconds.
  void Sent(size_t bytes, double now) {
    sent_.push_back({bytes, now, outstanding_ == 0});
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
      if (flight.alone) Observe(flight.bytes, now - flight.time);
    }
  }

  size_t window_bytes() const {
    if (fixed_bytes_ > 0) return fixed_bytes_;
    const double on_the_way = bandwidth_ * round_trip_;
    const double window = slice_bytes_ * 1.25 + std::min(on_the_way, kMostSlices * slice_bytes_);
    return static_cast<size_t>(window);
  }

 private:
  struct Flight {
    size_t bytes;
    double time;
    bool alone;  // nothing else was under way, so its time says something of the link
  };

  // Both estimates are of the best seen, since everything that disturbs a measurement makes a link
  // look slower and farther; they fade, since links change.
  void Observe(size_t bytes, double seconds) {
    seconds = std::max(seconds, 1e-6);
    if (bytes <= kSmall) {
      round_trip_ = round_trip_ == 0 ? seconds : std::min(round_trip_ * kFade, seconds);
    } else if (bytes >= slice_bytes_ / 2) {
      const double transfer = std::max(seconds - round_trip_, seconds / 2);
      bandwidth_ = std::max(bandwidth_ / kFade, bytes / transfer);
    }
  }

  static constexpr size_t kSmall = 8192;        // bytes that cost no time worth counting
  static constexpr double kFade = 1.01;         // an observation
  static constexpr double kMostSlices = 64;     // beyond that, priorities would be worth nothing

  const size_t slice_bytes_;
  const size_t fixed_bytes_;
  std::deque<Flight> sent_;
  size_t outstanding_ = 0;
  size_t credit_ = 0;
  double round_trip_ = 0;  // seconds
  double bandwidth_ = 0;   // bytes a second
};

}  // namespace kvstore_ext
