#include "codecs/two_bit.h"

#include <algorithm>

#include "codecs/bits.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "2bit";
constexpr int kWidth = 2;
constexpr size_t kChunk = 4096;  // elements whose codes are worked on at a time

size_t EncodedBytes(size_t elements) { return DivideUp(elements * kWidth, 8); }

std::shared_ptr<const Codec> Make(const MethodValues& values, int) {
  return std::make_shared<TwoBit>(static_cast<float>(values.Number("threshold")));
}

}  // namespace

CodecMethod TwoBit::Method() { return {kName, {MethodOption::NumberAbove("threshold", 0)}, Make}; }

Buffer TwoBit::Encode(const float* values, size_t elements, float, const Draws&) const {
  Buffer bytes = Buffer::Allocate(EncodedBytes(elements));
  const float threshold = threshold_;  // which no store to the sum can change
  uint8_t codes[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t count = std::min(kChunk, elements - begin);
    for (size_t i = 0; i < count; ++i) {
      const float value = values[begin + i];
      codes[i] = value >= threshold ? 1 : value <= -threshold ? 2 : 0;
    }
    PackBits(codes, count, kWidth, bytes.data.get() + EncodedBytes(begin));
  }
  return bytes;
}

void TwoBit::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  CheckSize(kName, bytes, elements, EncodedBytes(elements));
  const float threshold = threshold_;  // which no store to the sum can change
  uint8_t codes[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t count = std::min(kChunk, elements - begin);
    UnpackBits(bytes.data.get() + EncodedBytes(begin), count, kWidth, codes);
    if (std::find(codes, codes + count, 3) != codes + count) RefuseBytes(kName, "a code of 3");
    for (size_t i = 0; i < count; ++i) {
      sum[begin + i] += codes[i] == 1 ? threshold : codes[i] == 2 ? -threshold : 0.0F;
    }
  }
}

}  // namespace kvstore_ext
