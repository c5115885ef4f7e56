// The largest elements of each gradient; the others are lost.
#pragma once

#include "codecs/codec.h"

namespace kvstore_ext {

// A worker sends the largest of a key's elements, by magnitude; of equal ones the first. The sum
// travels back with its elements that are not zero, unless it is smaller as it is.
//
// Bytes: for each element that is sent its index in the slice, as uint32, and its value as float32.
class TopK : public Codec {
 public:
  static CodecMethod Method();

  // A ratio of the elements is sent: above 0, 1 at the most.
  explicit TopK(double ratio) : ratio_(ratio) {}

  // The elements that are not zero; the key's encoder sees to it that most are.
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  double bytes_per_element() const override;
  std::unique_ptr<KeyEncoder> MakeEncoder(size_t elements) const override;

 private:
  const double ratio_;
};

}  // namespace kvstore_ext
