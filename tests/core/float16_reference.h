// float16 by its definition (IEEE 754, binary16), to compare what the core does by bits with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kvstore_ext {

struct Float16 {
  uint16_t bits;
};

inline double ToDouble(Float16 number) {
  const int exponent = number.bits >> 10 & 31;
  const int fraction = number.bits & 1023;
  double magnitude = std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 0) magnitude = std::ldexp(fraction, -24);
  if (exponent == 31) magnitude = fraction == 0 ? INFINITY : NAN;
  return (number.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest, of two equally near the one whose last bit is 0.
inline Float16 ToFloat16(double value) {
  static const std::vector<double> magnitudes = [] {
    std::vector<double> all;
    for (uint16_t bits = 0; bits < 0x7c00; ++bits) all.push_back(ToDouble({bits}));
    all.push_back(65536);  // what would follow is infinite
    return all;
  }();
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const auto signed_bits = [sign](ptrdiff_t bits) {
    return Float16{static_cast<uint16_t>(sign | bits)};
  };
  if (std::isnan(value)) return signed_bits(0x7e00);
  const double magnitude = std::abs(value);
  const auto above = std::upper_bound(magnitudes.begin(), magnitudes.end(), magnitude);
  const ptrdiff_t after = above - magnitudes.begin();
  if (above == magnitudes.end()) return signed_bits(after - 1);
  const double down = magnitude - above[-1], up = *above - magnitude;
  return signed_bits(down < up || (down == up && after % 2 == 1) ? after - 1 : after);
}

// How numbers of a type are added, and what they are afterwards.
template <typename Number>
struct Sum {
  using Wide = Number;
  static Wide Widen(Number number) { return number; }
  static Number Narrow(Wide sum) { return sum; }
};

template <>
struct Sum<Float16> {
  using Wide = float;
  static float Widen(Float16 number) { return static_cast<float>(ToDouble(number)); }
  static Float16 Narrow(float sum) { return ToFloat16(sum); }
};

}  // namespace kvstore_ext
