// Dividing many values by their magnitude, so that few are left to be compared one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/subset.h"

namespace kvstore_ext {

// Magnitudes from one to another, as MagnitudeBits.
struct Bracket {
  int32_t least = 0;
  int32_t most = std::numeric_limits<int32_t>::max();
};

// Elements that a sample aims at: of n elements every ceil(n / this)-th one is taken.
constexpr size_t kBracketSample = 65536;

// The magnitudes, as MagnitudeBits, of |value| + c |update| of every step-th element, where
// `updates` is null of |value|. From element `first` on; returns how far the next one lies behind
// the end, so that several arrays are sampled as though they were one. Precondition: step > 0.
size_t AddSample(const float* values, const float* updates, float c, size_t elements, size_t first,
                 size_t step, std::vector<int32_t>* sample);

// Where the magnitude of the count-th largest of so many values lies, nearly for certain, as far as
// a sample of their magnitudes tells. Zero is never in it: of a sparse gradient, nearly all would
// be. Preconditions: count <= elements, and the sample has at least one where there are any.
Bracket BracketOf(std::vector<int32_t> sample, uint64_t elements, uint64_t count);

// Elements by where their magnitude lies.
struct Divided {
  Subset above;                  // those above the bracket
  std::vector<uint64_t> within;  // those within it, in order
  std::vector<int32_t> bits;     // and their magnitudes
};

// Of |value| + c |update|; without updates, which null says, of |value|.
Divided Divide(const float* values, const float* updates, float c, size_t elements,
               const Bracket& bracket);

}  // namespace kvstore_ext
