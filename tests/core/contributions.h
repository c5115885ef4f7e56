// What workers contribute to the sum of a slice, and the sum that is expected of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "float16_reference.h"
#include "server/aggregator.h"

namespace kvstore_ext {

template <typename Number>
inline constexpr DType kTypeOf = DType::kFloat32;
template <>
inline constexpr DType kTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kTypeOf<Float16> = DType::kFloat16;

template <typename Number>
using Numbers = std::vector<Number>;

template <typename Number>
Buffer ToBuffer(const Numbers<Number>& numbers) {
  Buffer buffer = Buffer::Allocate(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(buffer.data.get(), numbers.data(), buffer.size);
  return buffer;
}

template <typename Number>
Numbers<Number> ToNumbers(const Buffer& buffer) {
  Numbers<Number> numbers(buffer.size / sizeof(Number));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), buffer.data.get(), numbers.size() * sizeof(Number));
  }
  return numbers;
}

template <typename Number>
bool SameBits(const Number& one, const Number& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

// Equal to the bit, except that one NaN is as good as another.
template <typename Number>
bool SameNumbers(const Numbers<Number>& found, const Numbers<Number>& expected) {
  const auto same = [](Number one, Number other) {
    const bool both_nan =
        std::isnan(Sum<Number>::Widen(one)) && std::isnan(Sum<Number>::Widen(other));
    return both_nan || SameBits(one, other);
  };
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same);
}

// In this order; float16 is added in float32 and rounded once.
template <typename Number>
Numbers<Number> AddedOneByOne(const std::vector<Numbers<Number>>& arrays) {
  Numbers<Number> sums = arrays[0];
  for (size_t i = 0; i < sums.size(); ++i) {
    auto sum = Sum<Number>::Widen(arrays[0][i]);
    for (size_t rank = 1; rank < arrays.size(); ++rank) sum += Sum<Number>::Widen(arrays[rank][i]);
    if (arrays.size() > 1) sums[i] = Sum<Number>::Narrow(sum);
  }
  return sums;
}

// Of workers' arrays and the order in which they arrive.
class RandomContributions {
 public:
  explicit RandomContributions(unsigned seed) : random_(seed) {}

  size_t Below(size_t bound) { return random_() % bound; }

  std::vector<int> Arrival(size_t workers) {
    std::vector<int> ranks(workers);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random_);
    return ranks;
  }

  // Any bits at all; what is special comes often.
  template <typename Number>
  std::vector<Numbers<Number>> AnyBits(size_t workers, size_t elements) {
    using Limits = std::numeric_limits<typename Sum<Number>::Wide>;
    const typename Sum<Number>::Wide special[] = {0,
                                                  -0.0F,
                                                  1,
                                                  Limits::infinity(),
                                                  -Limits::infinity(),
                                                  Limits::quiet_NaN(),
                                                  Limits::max(),
                                                  Limits::min(),
                                                  Limits::denorm_min(),
                                                  65504,
                                                  6e-8F};
    return Make<Number>(workers, elements, [&] {
      const uint64_t bits = random_();
      Number number;
      std::memcpy(&number, &bits, sizeof number);
      return Below(4) == 0 ? Sum<Number>::Narrow(special[Below(11)]) : number;
    });
  }

  // Gradients, of magnitudes from 0.001 to 1000.
  template <typename Number>
  std::vector<Numbers<Number>> Gradients(size_t workers, size_t elements) {
    std::normal_distribution<double> normal;
    return Make<Number>(workers, elements, [&] {
      const double value = normal(random_) * std::pow(10.0, static_cast<double>(Below(7)) - 3);
      return Sum<Number>::Narrow(static_cast<typename Sum<Number>::Wide>(value));
    });
  }

 private:
  template <typename Number, typename Draw>
  std::vector<Numbers<Number>> Make(size_t workers, size_t elements, Draw draw) {
    std::vector<Numbers<Number>> arrays(workers, Numbers<Number>(elements));
    for (auto& array : arrays) std::generate(array.begin(), array.end(), draw);
    return arrays;
  }

  std::mt19937_64 random_;
};

}  // namespace kvstore_ext
