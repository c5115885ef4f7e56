#include "codecs/one_bit.h"

#include <algorithm>

#include "codecs/bits.h"
#include "codecs/kernels/kernels.h"
#include "support/float16.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "onebit";
constexpr size_t kChunk = 4096;  // elements whose codes are worked on at a time

size_t EncodedBytes(size_t elements, size_t buckets) {
  return 2 * sizeof(float) * buckets + DivideUp(elements, 8);
}

std::shared_ptr<const Codec> Make(const MethodValues& values, int) {
  return std::make_shared<OneBit>(
      OneBitOptions{values.Whole("bucket"), values.Flag("error_feedback")});
}

}  // namespace

CodecMethod OneBit::Method() {
  // A bucket may be a column, of any length.
  return {kName,
          {MethodOption::Whole("bucket", 1, 0x1p32), MethodOption::Flag("error_feedback")},
          Make};
}

Buffer OneBit::Encode(const float* values, size_t elements, float, const Draws&) const {
  const size_t buckets = DivideUp(elements, options_.bucket);
  Buffer bytes = Buffer::Allocate(EncodedBytes(elements, buckets));
  char* means = bytes.data.get();
  char* bits = means + 2 * sizeof(float) * buckets;
  for (size_t bucket = 0; bucket < buckets; ++bucket, means += sizeof(float)) {
    const size_t begin = bucket * options_.bucket;
    const Means found =
        kernels().means(values + begin, std::min(options_.bucket, elements - begin));
    Store(means, found.positive);
    Store(means + sizeof(float) * buckets, found.negative);
  }
  uint8_t codes[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t length = std::min(kChunk, elements - begin);
    for (size_t i = 0; i < length; ++i) codes[i] = values[begin + i] >= 0 ? 1 : 0;
    PackBits(codes, length, 1, bits + begin / 8);
  }
  return bytes;
}

void OneBit::Check(size_t elements, const Buffer& bytes) const {
  const size_t buckets = DivideUp(elements, options_.bucket);
  CheckSize(kName, bytes, elements, EncodedBytes(elements, buckets));
  for (size_t i = 0; i < 2 * buckets; ++i) {
    const auto mean = Load<float>(bytes.data.get() + sizeof(float) * i);
    if (MagnitudeBits(mean) >= kNotFinite) {
      RefuseBytes(kName, "a mean of " + std::to_string(mean));
    }
  }
}

void OneBit::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  Check(elements, bytes);
  const size_t buckets = DivideUp(elements, options_.bucket);
  const char* means = bytes.data.get();
  const char* bits = means + 2 * sizeof(float) * buckets;
  uint8_t codes[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t length = std::min(kChunk, elements - begin);
    UnpackBits(bits + begin / 8, length, 1, codes);
    for (size_t i = 0; i < length;) {
      const size_t bucket = (begin + i) / options_.bucket;
      const size_t end = std::min(length, (bucket + 1) * options_.bucket - begin);
      const auto positive = Load<float>(means + sizeof(float) * bucket);
      const auto negative = Load<float>(means + sizeof(float) * (buckets + bucket));
      for (; i < end; ++i) sum[begin + i] += codes[i] != 0 ? positive : negative;
    }
  }
}

Buffer OneBit::EncodeSum(const float* sum, size_t elements, float scaler,
                         const Draws& draws) const {
  return Encode(sum, elements, scaler, draws);
}

double OneBit::bytes_per_element() const { return 1.0 / 8 + 2.0 * sizeof(float) / options_.bucket; }

}  // namespace kvstore_ext
