// How many bytes a peer may be sent before it acknowledges: enough to keep the link busy, no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace kvstore_ext {

// Advises a window from a link's bandwidth and round-trip time: a little over one slice, so that the
// next one leaves when the last arrives, plus what the link holds during a round trip. On a slow near
// link that is stop-and-wait, which keeps priorities best; on a fast or long one it grows with
// bandwidth times delay.
//
// Both estimates are of the best seen, since everything that disturbs a measurement makes a link look
// slower and farther; they fade, since links change. Not thread-safe.
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
      if (flight.alone && flight.bytes >= slice_bytes_ / 2) Transfer(flight, now - flight.time);
    }
  }

  size_t window_bytes() const {
    if (fixed_bytes_ > 0) return fixed_bytes_;
    const double on_the_way = std::min(bandwidth_ * round_trip_, kMostSlices * slice_bytes_);
    return static_cast<size_t>(1.25 * slice_bytes_ + on_the_way);
  }

 private:
  struct Flight {
    size_t bytes;
    double time;
    bool alone;  // next to nothing else was under way, so its time says something of the link
  };

  void Transfer(const Flight& flight, double seconds) {
    if (round_trip_ == 0) return;
    // What a flight takes beyond a round trip; never so little that jitter would look like speed.
    const double transfer = std::max({seconds - round_trip_, seconds * kLeastShare, 1e-6});
    bandwidth_ = std::max(bandwidth_ / kFade, flight.bytes / transfer);
  }

  static constexpr double kFade = 1.01;       // an observation
  static constexpr double kLeastShare = 0.04;
  static constexpr double kMostSlices = 64;   // beyond that, priorities would be worth nothing

  const size_t slice_bytes_;
  const size_t fixed_bytes_;
  std::deque<Flight> sent_;
  size_t outstanding_ = 0;
  size_t credit_ = 0;
  double round_trip_ = 0;  // seconds; 0: not known yet
  double bandwidth_ = 0;   // bytes a second
};

}  // namespace kvstore_ext
