// float16 from and to float32, in a form that compilers turn into vector instructions.
#pragma once

#include <cstdint>
#include <cstring>

namespace kvstore_ext {

inline float BitsToFloat(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline int32_t FloatToBits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The bits without the sign; they are ordered as the magnitudes are, and those of what is not
// finite begin at kNotFinite. Threads that take subnormal numbers for zero see them here.
inline int32_t MagnitudeBits(float value) { return FloatToBits(value) & 0x7fffffff; }
constexpr int32_t kNotFinite = 0x7f800000;

// Whether a number is finite and not below zero, as scalers and norms are.
inline bool IsMagnitude(float value) { return value >= 0 && MagnitudeBits(value) < kNotFinite; }

inline float HalfToFloat(uint16_t half) {
  const int32_t magnitude = half & 0x7fff;
  const int32_t sign = (half & 0x8000) << 16;
  // No step has a subnormal float32, which MXNet's threads take for zero.
  const int32_t subnormal = FloatToBits(static_cast<float>(magnitude) * 0x1p-24F);
  const int32_t normal = (magnitude << 13) + (112 << 23);
  const int32_t special = (magnitude << 13) | kNotFinite;
  const int32_t bits = magnitude < 0x400 ? subnormal : normal;
  return BitsToFloat(sign | (magnitude < 0x7c00 ? bits : special));
}

// To nearest, ties to even.
inline uint16_t FloatToHalf(float value) {
  const int32_t magnitude = MagnitudeBits(value);
  const int32_t sign =
      static_cast<int32_t>(static_cast<uint32_t>(FloatToBits(value)) >> 16 & 0x8000);
  // Adding 0.5 leaves a subnormal half's bits, rounded to nearest even, in the lowest places.
  const int32_t subnormal = FloatToBits(BitsToFloat(magnitude) + 0.5F) - 0x3f000000;
  const int32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  int32_t bits = magnitude < 0x38800000 ? subnormal : normal;
  bits = magnitude < 0x477ff000 ? bits : 0x7c00;  // what rounds beyond the largest half
  bits = magnitude <= kNotFinite ? bits : 0x7e00;
  return static_cast<uint16_t>(sign | bits);
}

}  // namespace kvstore_ext
