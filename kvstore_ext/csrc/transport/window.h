// How much a peer may be sent before it acknowledges: enough to keep the link busy, no more; and in
// which parts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvstore_ext {

// Smaller parts cost more messages than they gain: docs/performance.md has it.
constexpr size_t kLeastPart = 200000;
// What a link has under way if it is near and slow, and training waits for it.
constexpr size_t kFirstWindow = 4 * kLeastPart;

// What a link begins with, until rank 0 has announced another.
struct Window {
  uint64_t part_bytes = kLeastPart;  // a slice is sent in parts of at most so many bytes
  uint64_t bytes = kFirstWindow;     // so many may be under way

  // As it travels.
  std::string Pack() const {
    return std::string(reinterpret_cast<const char*>(this), sizeof *this);
  }
  // Throws std::invalid_argument for a text that Pack did not make.
  static Window Unpack(const std::string& text) {
    Window window;
    if (text.size() != sizeof window) {
      throw std::invalid_argument("a window of " + std::to_string(text.size()) + " bytes");
    }
    std::memcpy(&window, text.data(), sizeof window);
    if (window.part_bytes == 0) throw std::invalid_argument("a window of parts of 0 bytes");
    return window;
  }

  bool operator==(const Window& other) const {
    return part_bytes == other.part_bytes && bytes == other.bytes;
  }
};

// Advises a window from how much the links of a process carry at a time, from their round-trip
// times, and from how long training waits. Whatever is under way can no longer be overtaken, and
// waits at the wire for what else is. So a slow near network gets four slices at a time on every
// link, or as many smaller ones. TCP does not share a wire among its links evenly, and a link that
// is ahead must not run out meanwhile: measured with CUBIC, two cost 1 to 4 % where training waits
// for the network, and one 4 to 10 %. More than four gain nothing.
//
// What is urgent waits behind all that is under way on all links. Where training waits for the
// network anyway nobody sees that; where it computes for about as long as that takes everybody
// does, and two slices make iterations 1 to 9 % shorter. So links get two where little more than
// all their windows hold travels while training waits: docs/performance.md has it.
//
// What a fast or long network holds during a round trip takes the place of all that where it is
// more. Slices of twice the usual size and more travel in parts.
//
// One process's advice is to hold for all links of the job: a link with twice the window of another
// takes twice its share of the wire, and then everybody waits for the other. Measured, that costs a
// fifth of the speed. Thread-safe.
class WindowEstimator {
 public:
  // For a process with so many links. `changed` is called with every new advice, one call at a
  // time.
  WindowEstimator(size_t slice_bytes, int links, std::function<void(const Window&)> changed)
      : slice_bytes_(slice_bytes),
        changed_(std::move(changed)),
        round_trips_(links),
        bytes_(links),
        advice_(Initial(slice_bytes, 0)) {}

  // What a job begins with; fixed_bytes > 0 stay as they are.
  static Window Initial(size_t slice_bytes, size_t fixed_bytes) {
    if (fixed_bytes > 0) return {slice_bytes, fixed_bytes};
    const size_t part = PartBytes(slice_bytes, 0);
    return {part, LeastParts(part, kFirstWindow) * part};
  }

  // A link to a peer of this host has a window of its own, and says nothing of the wires.
  void LeaveOut(int peer) {
    std::lock_guard<std::mutex> lock(mutex_);
    left_out_.insert(peer);
  }

  // A message without data, sent while its link carried nothing else, was answered after so long.
  // The shortest counts, since everything that disturbs it makes it longer.
  void RoundTrip(int peer, double seconds) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (left_out_.count(peer) != 0) return;
    double& shortest = round_trips_[peer];
    shortest = shortest == 0 ? seconds : std::min(shortest * kRoundTripFades, seconds);
    round_trip_ = Sorted(round_trips_)[Links() / 2];
    Advise();
  }

  // A peer acknowledged further bytes, at a time in seconds.
  void Acknowledged(int peer, size_t bytes, double now) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (left_out_.count(peer) != 0) return;
    const bool idle = now - last_ > kIdleSeconds + 4 * round_trip_;
    last_ = now;
    bytes_[peer] += static_cast<double>(bytes);
    total_ += bytes;
    if (!idle) {
      const size_t links = Links();
      if (total_ < links * std::max(kLeastMeasured, 2 * advice_.bytes)) return;
      if (now - since_ < kLeastSeconds) return;
      const double rate = Sorted(bytes_)[(links - 1) / 2] / (now - since_);
      rate_ = std::max(rate_ / kRateFades, rate);
      Advise();
    }
    since_ = now;
    total_ = 0;
    std::fill(bytes_.begin(), bytes_.end(), 0);
  }

  // An iteration has ended, of which training has waited for such a share. So many bytes have
  // travelled so far, to peers of other hosts and from them.
  void Iterated(double waits, double sent, double received) {
    std::lock_guard<std::mutex> lock(mutex_);
    const double bytes = std::max(sent - sent_, received - received_);
    sent_ = sent;
    received_ = received;
    if (std::exchange(iterates_, true)) travelled_.push_back(waits * bytes);
    if (travelled_.size() > kIterations) travelled_.pop_front();
    if (travelled_.empty()) return;
    std::vector<double> most(travelled_.begin(), travelled_.end());
    std::sort(most.begin(), most.end(), std::greater<>());
    const double counts = most[std::min<size_t>(1, most.size() - 1)];
    const double windows = counts / (static_cast<double>(kFirstWindow) * Links());
    const bool hurried = hurries_;
    if (windows < kFewWindows) hurries_ = true;
    if (windows > kManyWindows) hurries_ = false;
    if (hurries_ != hurried) Advise(true);
  }

  Window advice() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return advice_;
  }

 private:
  // That are not left out.
  size_t Links() const { return bytes_.size() - left_out_.size(); }

  // Whatever has changed; or a window that is hardly smaller, too, where that is asked for.
  void Advise(bool exactly = false) {
    const auto part = PartBytes(slice_bytes_, rate_);
    // Bounded, or priorities would be worth nothing.
    const double bytes =
        std::min(kGrowth * rate_ * (round_trip_ + kWakeUp),
                 kMostSlices * static_cast<double>(std::max(slice_bytes_, kLeastPart)));
    const double held = bytes / static_cast<double>(part);
    const size_t least = hurries_ ? kFirstWindow / 2 : kFirstWindow;
    const size_t parts =
        std::max(LeastParts(part, least), 1 + static_cast<size_t>(std::ceil(held)));
    const Window advice = {part, part * parts};
    // Between two numbers of parts it must not go to and fro.
    const bool hardly_less = part == advice_.part_bytes && advice.bytes + part == advice_.bytes &&
                             std::ceil(held) - held < 0.25;
    if ((hardly_less && !exactly) || advice == advice_) return;
    advice_ = advice;
    changed_(advice);
  }

  // One alone would wait for each acknowledgement, however large it is.
  static size_t LeastParts(size_t part, size_t least) {
    return std::max<size_t>(2, (least + part - 1) / part);
  }

  static size_t PartBytes(size_t slice_bytes, double rate) {
    const auto least = std::max(kLeastPart, static_cast<size_t>(rate * kPartSeconds));
    size_t part = slice_bytes;
    while (part / 2 >= least) part /= 2;
    return part;
  }

  // By peer, without those that are left out. The one in the middle counts: one to a peer on this
  // machine is much faster.
  std::vector<double> Sorted(const std::vector<double>& values) const {
    std::vector<double> sorted;
    for (size_t peer = 0; peer < values.size(); ++peer) {
      if (left_out_.count(static_cast<int>(peer)) == 0) sorted.push_back(values[peer]);
    }
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  // Several times what a burst allowance lets through at once, or a busy machine acknowledges at
  // once.
  static constexpr uint64_t kLeastMeasured = 256000;
  static constexpr double kLeastSeconds = 0.002;
  static constexpr double kIdleSeconds = 0.02;
  static constexpr double kRateFades = 1.01;        // a measurement
  static constexpr double kRoundTripFades = 1.003;  // a measurement
  // Seconds by which a busy machine's threads come late to an acknowledgement.
  static constexpr double kWakeUp = 0.0002;
  // What a part takes at the least, which bounds the messages a second and what they cost.
  static constexpr double kPartSeconds = 0.0006;
  // A rate that the window itself bounds would never grow otherwise.
  static constexpr double kGrowth = 1.1;
  static constexpr double kMostSlices = 64;
  // Of all links, that travel while training waits: below the first it hurries, above the second it
  // does not, and between them all stays as it is.
  static constexpr double kFewWindows = 1.4, kManyWindows = 1.9;
  // Of the last ones that with the second most counts: one may wait for an evaluation, and a script
  // that adds up something else in between makes short ones.
  static constexpr size_t kIterations = 5;

  const size_t slice_bytes_;
  const std::function<void(const Window&)> changed_;
  mutable std::mutex mutex_;         // of all below
  std::set<int> left_out_;           // peers
  std::vector<double> round_trips_;  // by peer, in seconds; 0: not known yet
  double round_trip_ = 0;            // the one in the middle
  std::vector<double> bytes_;        // by peer, acknowledged since the measurement began
  size_t total_ = 0;                 // of them
  double since_ = 0;                 // when it began
  double last_ = 0;                  // when anything was acknowledged
  double rate_ = 0;                  // of a link beside the others, bytes a second
  double sent_ = 0, received_ = 0;   // bytes, before the last iteration
  bool iterates_ = false;            // whether these are known
  std::deque<double> travelled_;     // bytes while training waited, in the last iterations
  bool hurries_ = false;             // whether training sees what urgent messages wait for
  Window advice_;
};

}  // namespace kvstore_ext
