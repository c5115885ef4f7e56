#include "support/dtype.h"

#include <cstring>
#include <stdexcept>

#include "support/float16.h"

namespace kvstore_ext {
namespace {

template <typename Number>
void Add(char* sum, const char* values, size_t count) {
  Number* __restrict to = reinterpret_cast<Number*>(sum);
  const Number* __restrict from = reinterpret_cast<const Number*>(values);
  for (size_t i = 0; i < count; ++i) to[i] += from[i];
}

template <typename Number>
void MultiplyAll(char* values, size_t count, Number factor) {
  Number* __restrict to = reinterpret_cast<Number*>(values);
  for (size_t i = 0; i < count; ++i) to[i] *= factor;
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

void Multiply(DType sum_type, char* values, size_t count, double factor) {
  if (sum_type == DType::kFloat64) return MultiplyAll<double>(values, count, factor);
  MultiplyAll<float>(values, count, static_cast<float>(factor));
}

}  // namespace kvstore_ext
