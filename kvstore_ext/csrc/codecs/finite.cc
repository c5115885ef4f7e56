#include "codecs/finite.h"

#include "codecs/kernels/kernels.h"
#include "support/float16.h"

namespace kvstore_ext {
namespace {

constexpr int16_t kHalfNotFinite = 0x7c00;
constexpr int64_t kDoubleNotFinite = 0x7ff0000000000000;

}  // namespace

bool AllFinite(DType dtype, const char* values, size_t elements) {
  switch (dtype) {
    case DType::kFloat16:
      return kernels().largest_half(reinterpret_cast<const uint16_t*>(values), elements) <
             kHalfNotFinite;
    case DType::kFloat64:
      return kernels().largest_double(reinterpret_cast<const double*>(values), elements) <
             kDoubleNotFinite;
    case DType::kFloat32: break;
  }
  return kernels().largest(reinterpret_cast<const float*>(values), elements) < kNotFinite;
}

}  // namespace kvstore_ext
