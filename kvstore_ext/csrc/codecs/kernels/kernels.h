// The loops over all elements in which codecs and the servers' optimizers spend their time, each
// compiled for several instruction sets. All of them give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/random.h"

namespace kvstore_ext {

// Sums over many elements are taken in so many lanes: lane j sums the elements i with i % 16 == j,
// in order, and then lane j takes lane j + 8's sum, j + 4's, j + 2's and j + 1's.
constexpr size_t kLanes = 16;

// Ternary digits are packed five a byte, in blocks of 32 bytes; see terngrad.h.
constexpr size_t kTernaryLanes = 32;
constexpr size_t kTernaryRows = 5;

struct Moments {
  double sum = 0;
  double squares = 0;
  double largest_square = 0;  // nothing certain where the values are not all finite

  // Squares of finite float32 numbers, which are exact in float64, have a finite sum.
  bool finite() const { return squares <= std::numeric_limits<double>::max(); }
};

// Means of the elements that are at least zero, and of those below; zero where there are none.
struct Means {
  float positive = 0;
  float negative = 0;
};

// The numbers of a step of MXNet's SGD, as its operator multi_sgd_mom_update has them. A clip below
// zero clips nothing.
struct SgdStep {
  float lr = 0, wd = 0, rescale = 1, clip = -1, momentum = 0;
};

// Those of a step of its Adam, as adam_update has them: lr is already corrected for the count.
struct AdamStep {
  float lr = 0, wd = 0, rescale = 1, clip = -1, beta1 = 0, beta2 = 0, epsilon = 0;
};

// Arrays do not overlap. What is not said here stands with the codec that uses it.
struct Kernels {
  Moments (*moments)(const float* values, size_t elements);
  double (*squares)(const float* values, size_t elements);
  // MagnitudeBits, and what they are for other types; 0 without elements.
  int32_t (*largest)(const float* values, size_t elements);
  int16_t (*largest_half)(const uint16_t* halves, size_t elements);
  int64_t (*largest_double)(const double* values, size_t elements);
  uint8_t (*largest_byte)(const uint8_t* bytes, size_t count);
  Means (*means)(const float* values, size_t elements);

  // Of the MagnitudeBits of |value| + c |update|, or of the values where `updates` is null: which
  // are above `most`, a bit each in the words, 64 elements a word; and those from `least` to `most`
  // with their indices, in order. Returns the number of these; there is room for all elements.
  size_t (*divide)(const float* values, const float* updates, float c, size_t elements,
                   int32_t least, int32_t most, uint64_t* above, uint32_t* within, int32_t* bits);

  // Sum of the magnitudes.
  double (*magnitudes)(const float* values, size_t elements);

  // Precondition: 0 <= limit <= scaler, 0 < scaler.
  void (*encode_ternary)(const float* values, size_t elements, float limit, float scaler,
                         const Draws& draws, uint8_t* bytes);
  void (*add_ternary)(float* sum, size_t elements, float scaler, const uint8_t* bytes);

  // Rows of `lanes` elements, the last ones shorter or missing: totals[j] is the number whose
  // digits in the base 2 * digit + 1, from the lowest on, are column j's values in units of the
  // scaler, within +-bound, plus digit. Precondition: the totals are below 2^48.
  void (*join_digits)(const float* values, size_t elements, size_t lanes, size_t rows, float scaler,
                      float bound, int digit, double* totals);
  // The way back; leaves in totals what is left of them above the digits.
  void (*split_digits)(double* totals, float* out, size_t elements, size_t lanes, size_t rows,
                       float scaler, int digit);

  // Precondition: 0 < norm.
  void (*quantise)(const float* values, size_t elements, float norm, int levels, const Draws& draws,
                   uint8_t* codes);
  void (*add_levels)(float* sum, size_t elements, float norm, int levels, const uint8_t* codes);

  void (*to_half)(const float* values, size_t elements, uint16_t* halves);
  void (*add_half)(float* sum, size_t elements, const uint16_t* halves);

  // Steps with the bits of MXNet 1.9.1's operators, which do not fuse multiplying and adding.
  // Without momentum, velocity is null.
  void (*step_sgd)(const SgdStep& step, const float* gradient, float* velocity, float* weights,
                   size_t elements);
  void (*step_adam)(const AdamStep& step, const float* gradient, float* mean, float* variance,
                    float* weights, size_t elements);
  // As MXNet casts, infinities and what is no number too, which to_half never has.
  void (*cast_to_half)(const float* values, size_t elements, uint16_t* halves);
};

// Those in use: the best that the processor has, unless UseKernels has said otherwise.
const Kernels& kernels();

// "plain", "avx2" or "avx512"; an empty name for the best. Throws std::invalid_argument for a name
// that is not among AvailableKernels.
void UseKernels(const std::string& name);

// What this processor can run, the plain ones first.
std::vector<std::string> AvailableKernels();

}  // namespace kvstore_ext
