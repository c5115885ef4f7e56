#include "codecs/sign_sgd.h"

#include <algorithm>

#include "codecs/bits.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "signsgd";
constexpr size_t kChunk = 4096;        // elements whose codes are worked on at a time
constexpr uint32_t kHalf = 1U << 23U;  // of what is drawn

std::shared_ptr<const Codec> Make(const MethodValues& values, int) {
  return std::make_shared<SignSgd>(SignSgdOptions{values.Number("scale"), values.Whole("seed")});
}

}  // namespace

CodecMethod SignSgd::Method() {
  return {kName, {MethodOption::NumberAbove("scale", 0), MethodOption::Seed()}, Make};
}

Buffer SignSgd::Encode(const float* values, size_t elements, float, const Draws& draws) const {
  Buffer bytes = Buffer::Allocate(DivideUp(elements, 8));
  uint8_t codes[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t length = std::min(kChunk, elements - begin);
    const Draws own = draws.From(begin);  // which no store to the codes can change
    for (size_t i = 0; i < length; ++i) {
      const float value = values[begin + i];
      const int heads = own.Get(static_cast<uint32_t>(i)) < kHalf ? 1 : 0;
      codes[i] = static_cast<uint8_t>(value > 0 ? 1 : value < 0 ? 0 : heads);
    }
    PackBits(codes, length, 1, bytes.data.get() + begin / 8);
  }
  return bytes;
}

void SignSgd::Check(size_t elements, const Buffer& bytes) const {
  CheckSize(kName, bytes, elements, DivideUp(elements, 8));
}

void SignSgd::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  Check(elements, bytes);
  uint8_t codes[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t length = std::min(kChunk, elements - begin);
    UnpackBits(bytes.data.get() + begin / 8, length, 1, codes);
    for (size_t i = 0; i < length; ++i) sum[begin + i] += static_cast<float>(2 * codes[i] - 1);
  }
}

Buffer SignSgd::EncodeSum(const float* sum, size_t elements, float scaler,
                          const Draws& draws) const {
  return Encode(sum, elements, scaler, draws);
}

void SignSgd::DecodeSum(float* out, size_t elements, const Buffer& bytes) const {
  Codec::DecodeSum(out, elements, bytes);
  const auto scale = static_cast<float>(options_.scale);
  for (size_t i = 0; i < elements; ++i) out[i] *= scale;
}

}  // namespace kvstore_ext
