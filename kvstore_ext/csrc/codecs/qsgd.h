// QSGD: every element as a whole number of levels, measured against the norm of its bucket.
#pragma once

#include "codecs/codec.h"

namespace kvstore_ext {

struct QsgdOptions {
  enum class Norm { kMax, kL2 };

  int bits = 8;         // an element takes; 2 to 8
  size_t bucket = 512;  // elements with a norm of their own, counted from the slice's beginning
  Norm norm = Norm::kL2;
  bool error_feedback = false;
  uint64_t seed = 0;
};

// Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding"
// (NeurIPS 2017), section 3.1: v becomes sign(v) norm q / s, where q is |v| s / norm rounded up or
// down by chance, so that it is right on average, and s = 2^(bits - 1) - 1. Their Elias coding is
// left out. The sum is encoded once more.
//
// Bytes: the norms of all buckets as float32, then q + s of every element; see bits.h.
class Qsgd : public Codec {
 public:
  static CodecMethod Method();

  explicit Qsgd(const QsgdOptions& options);

  bool error_feedback() const override { return options_.error_feedback; }
  uint64_t seed() const override { return options_.seed; }
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  void Check(size_t elements, const Buffer& bytes) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  double bytes_per_element() const override;
  size_t alignment() const override { return options_.bucket; }

 private:
  float Norm(const float* values, size_t elements) const;
  size_t EncodedBytes(size_t elements) const;
  // In `codes`, one a byte.
  void EncodeBuckets(const float* values, size_t elements, const Draws& draws, char* norms,
                     uint8_t* codes) const;
  template <typename Found>
  void ForEachChunk(size_t elements, const Buffer& bytes, Found found) const;
  void AddBuckets(float* sum, size_t elements, const char* norms, const uint8_t* codes) const;

  const QsgdOptions options_;
  const int levels_;
  const size_t chunk_;  // elements worked on at a time: whole buckets, in whole bytes
};

}  // namespace kvstore_ext
