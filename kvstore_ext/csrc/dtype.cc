#include "dtype.h"

#include <cstring>
#include <stdexcept>

namespace kvstore_ext {
namespace {

float BitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t FloatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return BitsToFloat(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // Scaling by 2^112 turns half's exponent bias into float's and subnormals into normals alike.
  const float value = BitsToFloat(magnitude << 13) * BitsToFloat(0x77800000u);
  return BitsToFloat(sign | FloatToBits(value));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = FloatToBits(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // not a number
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds beyond the largest half
  if (magnitude < 0x38800000u) {
    // Adding 0.5 leaves a subnormal half's bits, rounded to nearest even, in the lowest places.
    return sign | static_cast<uint16_t>(FloatToBits(BitsToFloat(magnitude) + 0.5f) - 0x3f000000u);
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
}

template <typename Number>
void Add(char* sum, const char* values, size_t count) {
  Number* __restrict to = reinterpret_cast<Number*>(sum);
  const Number* __restrict from = reinterpret_cast<const Number*>(values);
  for (size_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 4;
    case DType::kFloat64: return 8;
    case DType::kFloat16: return 2;
  }
  throw std::invalid_argument("type flag " + std::to_string(static_cast<int>(dtype)) +
                              " is none of float32 (0), float64 (1) and float16 (2)");
}

std::string NameOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kFloat16: return "float16";
  }
  return "type flag " + std::to_string(static_cast<int>(dtype));
}

DType SumTypeOf(DType dtype) { return dtype == DType::kFloat16 ? DType::kFloat32 : dtype; }

void AddTo(DType dtype, char* sum, const char* values, size_t count) {
  if (dtype == DType::kFloat32) return Add<float>(sum, values, count);
  if (dtype == DType::kFloat64) return Add<double>(sum, values, count);
  float* to = reinterpret_cast<float*>(sum);
  const uint16_t* from = reinterpret_cast<const uint16_t*>(values);
  for (size_t i = 0; i < count; ++i) to[i] += HalfToFloat(from[i]);
}

void Widen(DType dtype, char* sum, const char* values, size_t count) {
  if (dtype != DType::kFloat16) {
    std::memcpy(sum, values, count * SizeOf(dtype));
    return;
  }
  float* to = reinterpret_cast<float*>(sum);
  const uint16_t* from = reinterpret_cast<const uint16_t*>(values);
  for (size_t i = 0; i < count; ++i) to[i] = HalfToFloat(from[i]);
}

void Narrow(DType dtype, char* values, const char* sum, size_t count) {
  if (dtype != DType::kFloat16) {
    std::memcpy(values, sum, count * SizeOf(dtype));
    return;
  }
  uint16_t* to = reinterpret_cast<uint16_t*>(values);
  const float* from = reinterpret_cast<const float*>(sum);
  for (size_t i = 0; i < count; ++i) to[i] = FloatToHalf(from[i]);
}

}  // namespace kvstore_ext
