#include "codecs/qsgd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "codecs/bits.h"
#include "codecs/kernels/kernels.h"
#include "support/float16.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "qsgd";
constexpr int kByte = 8;                 // bits, of codes that need no packing
constexpr size_t kChunkElements = 8192;  // about so many stay in the nearest cache

// A number of elements that fills buckets and bytes.
size_t ChunkOf(size_t bucket) {
  const size_t least = bucket * kByte;
  return least * std::max<size_t>(1, kChunkElements / least);
}

std::shared_ptr<const Codec> Make(const MethodValues& values, int) {
  QsgdOptions options;
  options.bits = static_cast<int>(values.Whole("bits"));
  options.bucket = values.Whole("bucket");
  options.norm = values.Word("norm") == "max" ? QsgdOptions::Norm::kMax : QsgdOptions::Norm::kL2;
  options.error_feedback = values.Flag("error_feedback");
  options.seed = values.Whole("seed");
  return std::make_shared<Qsgd>(options);
}

}  // namespace

CodecMethod Qsgd::Method() {
  return {kName,
          {MethodOption::Whole("bits", 2, 8), MethodOption::Whole("bucket", 1, 0x1p24),
           MethodOption::Choice("norm", {"l2", "max"}), MethodOption::Seed(),
           MethodOption::Flag("error_feedback")},
          Make};
}

Qsgd::Qsgd(const QsgdOptions& options)
    : options_(options), levels_((1 << (options.bits - 1)) - 1), chunk_(ChunkOf(options.bucket)) {}

float Qsgd::Norm(const float* values, size_t elements) const {
  if (options_.norm == QsgdOptions::Norm::kMax) {
    return BitsToFloat(kernels().largest(values, elements));
  }
  const double norm = std::sqrt(kernels().squares(values, elements));
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::min(norm, kLargest));
}

size_t Qsgd::EncodedBytes(size_t elements) const {
  return sizeof(float) * DivideUp(elements, options_.bucket) +
         DivideUp(elements * options_.bits, 8);
}

void Qsgd::EncodeBuckets(const float* values, size_t elements, const Draws& draws, char* norms,
                         uint8_t* codes) const {
  for (size_t begin = 0; begin < elements; begin += options_.bucket, norms += sizeof(float)) {
    const size_t length = std::min(options_.bucket, elements - begin);
    const float norm = Norm(values + begin, length);
    Store(norms, norm);
    if (norm > 0) {
      kernels().quantise(values + begin, length, norm, levels_, draws.From(begin), codes + begin);
    } else {
      std::fill_n(codes + begin, length, static_cast<uint8_t>(levels_));
    }
  }
}

Buffer Qsgd::Encode(const float* values, size_t elements, float, const Draws& draws) const {
  Buffer bytes = Buffer::Allocate(EncodedBytes(elements));
  char* norms = bytes.data.get();
  char* packed = norms + sizeof(float) * DivideUp(elements, options_.bucket);
  if (options_.bits == kByte) {
    EncodeBuckets(values, elements, draws, norms, reinterpret_cast<uint8_t*>(packed));
    return bytes;
  }
  std::vector<uint8_t> codes(std::min(chunk_, elements));
  for (size_t begin = 0; begin < elements; begin += chunk_) {
    const size_t length = std::min(chunk_, elements - begin);
    EncodeBuckets(values + begin, length, draws.From(begin), norms, codes.data());
    PackBits(codes.data(), length, options_.bits, packed);
    norms += sizeof(float) * (chunk_ / options_.bucket);
    packed += chunk_ / 8 * options_.bits;
  }
  return bytes;
}

void Qsgd::AddBuckets(float* sum, size_t elements, const char* norms, const uint8_t* codes) const {
  for (size_t begin = 0; begin < elements; begin += options_.bucket, norms += sizeof(float)) {
    const size_t length = std::min(options_.bucket, elements - begin);
    kernels().add_levels(sum + begin, length, Load<float>(norms), levels_, codes + begin);
  }
}

// Calls found(begin, length, norms, codes) for chunks of whole buckets. Throws as Check.
template <typename Found>
void Qsgd::ForEachChunk(size_t elements, const Buffer& bytes, Found found) const {
  CheckSize(kName, bytes, elements, EncodedBytes(elements));
  const char* norms = bytes.data.get();
  const char* packed = norms + sizeof(float) * DivideUp(elements, options_.bucket);
  std::vector<uint8_t> codes(options_.bits == kByte ? 0 : std::min(chunk_, elements));
  for (size_t begin = 0; begin < elements; begin += chunk_) {
    const size_t length = std::min(chunk_, elements - begin);
    const auto* whole = reinterpret_cast<const uint8_t*>(packed);
    if (options_.bits != kByte) {
      UnpackBits(packed, length, options_.bits, codes.data());
      whole = codes.data();
    }
    const uint8_t largest = kernels().largest_byte(whole, length);
    if (largest > 2 * levels_) RefuseBytes(kName, "a code of " + std::to_string(largest));
    for (size_t bucket = 0; bucket < DivideUp(length, options_.bucket); ++bucket) {
      const auto norm = Load<float>(norms + sizeof(float) * bucket);
      if (!IsMagnitude(norm)) RefuseBytes(kName, "a norm of " + std::to_string(norm));
    }
    found(begin, length, norms, whole);
    norms += sizeof(float) * (chunk_ / options_.bucket);
    packed += chunk_ / 8 * options_.bits;
  }
}

void Qsgd::Check(size_t elements, const Buffer& bytes) const {
  ForEachChunk(elements, bytes, [](size_t, size_t, const char*, const uint8_t*) {});
}

void Qsgd::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  ForEachChunk(elements, bytes,
               [&](size_t begin, size_t length, const char* norms, const uint8_t* codes) {
                 AddBuckets(sum + begin, length, norms, codes);
               });
}

Buffer Qsgd::EncodeSum(const float* sum, size_t elements, float scaler, const Draws& draws) const {
  return Encode(sum, elements, scaler, draws);
}

double Qsgd::bytes_per_element() const {
  return options_.bits / 8.0 + static_cast<double>(sizeof(float)) / options_.bucket;
}

}  // namespace kvstore_ext
