// The number types a gradient may have, and how they are added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvstore_ext {

// Values are MXNet's type flags.
enum class DType : int { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2 };

size_t SizeOf(DType dtype);
std::string NameOf(DType dtype);

// The type in which gradients of a type are summed: float16 in float32, others as they are.
DType SumTypeOf(DType dtype);

// sum[i] += values[i] for count elements; sum is of SumTypeOf(dtype), values of dtype.
void AddTo(DType dtype, char* sum, const char* values, size_t count);

// Converts count elements between dtype and SumTypeOf(dtype), rounding to nearest even.
void Widen(DType dtype, char* sum, const char* values, size_t count);
void Narrow(DType dtype, char* values, const char* sum, size_t count);

// values[i] *= factor for count elements of a type that sums have: float32 or float64.
void Multiply(DType sum_type, char* values, size_t count, double factor);

}  // namespace kvstore_ext
