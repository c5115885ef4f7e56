// A server's part in choosing a core over the whole model (Slim-DP, equation 1).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "codecs/bracket.h"
#include "slim_dp/slim_slice.h"
#include "support/subset.h"

namespace kvstore_ext {

// The significance |w| + c |g| of this server's elements, as a worker asks for it to find the one
// that the core's last element has over all servers. Float32 numbers that are at least 0 order as
// their bits do, so the worker looks for those bits: a sample tells it between which they lie, and
// one pass over all elements tells those that are above from the few between. Of these it counts
// the upper half of the bits first, then the lower. Owns the snapshots. Thread-safe: rank 0
// asks one thing after the other, but a stranger with a worker's number may not.
class CoreSelection {
 public:
  struct Sums {
    double parameters = 0;  // of |w|
    double update = 0;      // of |g|
  };

  static constexpr size_t kHalves = 1 << 16;

  explicit CoreSelection(std::map<SliceName, std::shared_ptr<SlimSlice::Snapshot>> snapshots)
      : snapshots_(std::move(snapshots)) {}

  // Slice by slice, so that they are added in the same order however many servers there are.
  std::map<SliceName, Sums> SumsOfSlices() const;

  // Sets c; returns the significance's bits of every step-th element. Throws std::invalid_argument
  // for a step of 0.
  std::vector<int32_t> Sample(float c, size_t step);

  // Returns how many elements have larger bits than the bracket's. May be called again.
  uint64_t Divide(const Bracket& bracket);

  // How many elements within the bracket have each upper half of bits; or each lower half, among
  // those with an upper one.
  std::vector<uint64_t> CountUpper() const;
  std::vector<uint64_t> CountLower(uint32_t upper) const;

  // How many elements of each slice have exactly these bits, which are within the bracket.
  std::map<SliceName, uint64_t> CountEqual(uint32_t bits) const;

  // The elements with larger bits than these, and the first ones of a slice that has equal ones.
  std::map<SliceName, Subset> Choose(uint32_t bits,
                                     const std::map<SliceName, uint64_t>& equal) const;

 private:
  const std::map<SliceName, std::shared_ptr<SlimSlice::Snapshot>> snapshots_;

  mutable std::mutex mutex_;  // of all below
  float c_ = 0;
  std::map<SliceName, Divided> divided_;
};

}  // namespace kvstore_ext
