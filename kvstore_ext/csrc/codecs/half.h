// Half the bytes: float16.
#pragma once

#include "codecs/codec.h"

namespace kvstore_ext {

// Every element as float16, rounded to nearest, ties to even; what is beyond the largest, 65504,
// as the largest. The sum likewise.
class Half : public Codec {
 public:
  static CodecMethod Method();

  explicit Half(bool error_feedback) : error_feedback_(error_feedback) {}

  bool error_feedback() const override { return error_feedback_; }
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  void Check(size_t elements, const Buffer& bytes) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  double bytes_per_element() const override { return sizeof(uint16_t); }

 private:
  const bool error_feedback_;
};

}  // namespace kvstore_ext
