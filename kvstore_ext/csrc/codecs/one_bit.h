// One bit an element: its sign.
#pragma once

#include "codecs/codec.h"

namespace kvstore_ext {

struct OneBitOptions {
  size_t bucket = 512;  // elements with means of their own, counted from the slice's beginning
  bool error_feedback = true;
};

// Seide et al., "1-Bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed
// Training of Speech DNNs" (Interspeech 2014): elements from zero on become the mean of those of
// their bucket, elements below the mean of those. The sum is encoded likewise.
//
// Bytes: for all buckets the mean from zero on, as float32; then for all the one below; then a bit
// an element, 1 from zero on; see bits.h.
class OneBit : public Codec {
 public:
  static CodecMethod Method();

  explicit OneBit(const OneBitOptions& options) : options_(options) {}

  bool error_feedback() const override { return options_.error_feedback; }
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  void Check(size_t elements, const Buffer& bytes) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  double bytes_per_element() const override;
  size_t alignment() const override { return options_.bucket; }

 private:
  const OneBitOptions options_;
};

}  // namespace kvstore_ext
