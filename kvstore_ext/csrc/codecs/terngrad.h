// TernGrad: every element travels as one of three numbers, the same ones for the whole key.
#pragma once

#include <memory>
#include <optional>

#include "codecs/codec.h"
#include "codecs/key_encoder.h"
#include "codecs/levels.h"

namespace kvstore_ext {

struct TernGradOptions {
  double clip_sigma = 2.5;  // gradients are clipped at so many standard deviations; 0 for never
  bool sharing = true;      // all workers scale with the largest of their scalers
  uint64_t seed = 0;
};

// Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning"
// (NeurIPS 2017): an element g, clipped, is sent as sign(g) s with probability |g| / s, else as
// zero, which is right on average. The scaler s is the key's largest magnitude after clipping; one
// scaler for all workers makes the sum's elements whole multiples of it, which travel back as such.
//
// Bytes: s as float32; then the digits 0, 1 and 2 for -s, 0 and s, in blocks of 160 elements in 32
// bytes. Byte j has the elements j, j + 32, ..., j + 128 of the block, times 1, 3, 9, 27 and 81. Of
// the m elements left, ceil(m / 5) bytes have every ceil(m / 5)th one.
class TernGrad : public Codec {
 public:
  static CodecMethod Method();

  TernGrad(const TernGradOptions& options, int workers);

  float Scaler(const float* values, size_t elements) const override;
  bool shares_scaler() const override { return options_.sharing; }
  uint64_t seed() const override { return options_.seed; }
  bool sums_lose() const override { return false; }
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  // Clips them at the limit, below the scaler where that is another worker's.
  Buffer EncodeClipped(const float* values, size_t elements, float limit, float scaler,
                       const Draws& draws) const override;
  void Check(size_t elements, const Buffer& bytes) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  float ScalerOf(const Buffer& bytes) const override;
  // float32 s, then levels; see levels.h. No data without sharing.
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  void DecodeSum(float* out, size_t elements, const Buffer& bytes) const override;
  double bytes_per_element() const override;
  std::unique_ptr<KeyEncoder> MakeEncoder(size_t elements) const override;

 private:
  const TernGradOptions options_;
  const std::optional<Levels> levels_;  // with sharing
};

// Clips a key at its own scaler when a larger one is shared.
class TernGradEncoder : public KeyEncoder {
 public:
  TernGradEncoder(std::shared_ptr<const TernGrad> codec, size_t elements)
      : KeyEncoder(codec, elements), terngrad_(std::move(codec)) {}

  float Prepare(const float* gradient, uint64_t round) override;

 private:
  Buffer EncodeValues(const float* values, size_t elements, float scaler,
                      const Draws& draws) const override;

  const std::shared_ptr<const TernGrad> terngrad_;
  float limit_ = 0;
};

}  // namespace kvstore_ext
