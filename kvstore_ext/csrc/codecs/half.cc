#include "codecs/half.h"

#include "codecs/kernels/kernels.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "fp16";
constexpr int16_t kInfinity = 0x7c00;  // the magnitude's bits, which those of NaN are above

std::shared_ptr<const Codec> Make(const MethodValues& values, int) {
  return std::make_shared<Half>(values.Flag("error_feedback"));
}

}  // namespace

CodecMethod Half::Method() { return {kName, {MethodOption::Flag("error_feedback")}, Make}; }

Buffer Half::Encode(const float* values, size_t elements, float, const Draws&) const {
  Buffer bytes = Buffer::Allocate(elements * sizeof(uint16_t));
  kernels().to_half(values, elements, reinterpret_cast<uint16_t*>(bytes.data.get()));
  return bytes;
}

void Half::Check(size_t elements, const Buffer& bytes) const {
  CheckSize(kName, bytes, elements, elements * sizeof(uint16_t));
  const auto* halves = reinterpret_cast<const uint16_t*>(bytes.data.get());
  if (kernels().largest_half(halves, elements) >= kInfinity) {
    RefuseBytes(kName, "a number that is not finite");
  }
}

void Half::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  Check(elements, bytes);
  kernels().add_half(sum, elements, reinterpret_cast<const uint16_t*>(bytes.data.get()));
}

Buffer Half::EncodeSum(const float* sum, size_t elements, float scaler, const Draws& draws) const {
  return Encode(sum, elements, scaler, draws);
}

}  // namespace kvstore_ext
