// What share of its time training waits.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>

namespace kvstore_ext {

// A backward pass lasts from when its first gradient is ready until its last one is. A forward pass
// takes half as long: a layer multiplies once there, and twice on its way back. In what else there
// is of an iteration training waits: for the network, for data, or for gradients that are all there
// only once a pass is over, as where a script clips their common norm. Whatever it is, the network
// has that time. Thread-safe.
class Slack {
 public:
  // A key's gradient is ready, at a time in seconds. Where it begins an iteration, the share of the
  // one before in which training has waited, from 0 to 1; nothing for the first of all.
  std::optional<double> Ready(uint64_t key, double now);

 private:
  static constexpr double kForward = 0.5;  // of a backward pass

  std::mutex mutex_;             // of all below
  std::set<uint64_t> seen_;      // in this iteration
  double first_ = 0, last_ = 0;  // when its gradients were ready
};

}  // namespace kvstore_ext
