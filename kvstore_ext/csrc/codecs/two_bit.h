// MXNet's own gradient compression, "2bit", number by number.
#pragma once

#include "codecs/codec.h"

namespace kvstore_ext {

// Sends a threshold, its negative or zero for each element, and carries the rest of the gradient
// over to the next round (MXNet's GradientCompression; its documentation calls the rest residual).
// Four elements a byte: 0 is zero, 1 the threshold, 2 its negative. The sum travels as it is.
class TwoBit : public Codec {
 public:
  static CodecMethod Method();

  explicit TwoBit(float threshold) : threshold_(threshold) {}

  bool error_feedback() const override { return true; }
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  double bytes_per_element() const override { return sizeof(float); }

 private:
  const float threshold_;
};

}  // namespace kvstore_ext
