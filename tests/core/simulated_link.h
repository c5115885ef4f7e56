// A link in simulated time, and an estimator that sees what a sender on it would see.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "transport/window.h"

namespace kvstore_ext {

struct LinkKind {
  const char* name;
  double bandwidth;   // bytes a second
  double round_trip;  // seconds
};

// Not thread-safe, and not to be moved: the estimator refers to it.
class SimulatedLink {
 public:
  SimulatedLink(const LinkKind& kind, size_t slice_bytes)
      : kind_(kind),
        slice_bytes_(slice_bytes),
        estimator_(slice_bytes, 1, [this](const Window& window) { changes_.push_back(window); }) {}
  SimulatedLink(const SimulatedLink&) = delete;

  // Sends the layers' gradients again and again; between them it computes and pings.
  void Train(const std::vector<size_t>& layers, int iterations = 20) {
    for (int i = 0; i < iterations; ++i) {
      estimator_.RoundTrip(0, kind_.round_trip);
      Send(layers);
      now_ += 0.1;
    }
  }

  // Which part of the bandwidth a long burst gets.
  double Busy() {
    const double begun = now_;
    Send(std::vector<size_t>(200, slice_bytes_));
    const double least = 200 * static_cast<double>(slice_bytes_) / kind_.bandwidth;
    return least / (now_ - begun - kind_.round_trip);
  }

  // What the link holds during a round trip, and while a busy machine's thread wakes up.
  double BytesOnTheWay() const { return kind_.bandwidth * (kind_.round_trip + 0.0002); }

  void Become(const LinkKind& kind) { kind_ = kind; }
  Window advice() const { return estimator_.advice(); }

  // The advice that was told, in order.
  std::vector<Window>& changes() { return changes_; }

 private:
  struct Flight {
    double acknowledged;  // when
    size_t bytes;
  };

  // Slices, as the window admits their parts; returns when all are acknowledged.
  void Send(const std::vector<size_t>& sizes) {
    for (const size_t size : sizes) {
      const size_t most = advice().part_bytes;
      for (size_t begin = 0; begin < size; begin += most) SendPart(std::min(most, size - begin));
    }
    while (!flights_.empty()) TakeAcknowledgement();
  }

  void SendPart(size_t bytes) {
    while (!flights_.empty() && in_flight_ + bytes > advice().bytes) TakeAcknowledgement();
    free_ = std::max(free_, now_) + static_cast<double>(bytes) / kind_.bandwidth;
    flights_.push_back({free_ + kind_.round_trip, bytes});
    in_flight_ += bytes;
  }

  void TakeAcknowledgement() {
    const Flight flight = flights_.front();
    flights_.pop_front();
    in_flight_ -= flight.bytes;
    now_ = flight.acknowledged;
    estimator_.Acknowledged(0, flight.bytes, now_);
  }

  LinkKind kind_;
  const size_t slice_bytes_;
  std::vector<Window> changes_;
  WindowEstimator estimator_;
  double now_ = 0;
  double free_ = 0;  // when the last byte has left
  std::deque<Flight> flights_;
  size_t in_flight_ = 0;
};

}  // namespace kvstore_ext
