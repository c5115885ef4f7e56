// MXNet's own gradient compression, "2bit", number by number.
#pragma once

#include <vector>

#include "codec.h"

namespace kvstore_ext {

// Sends a threshold, its negative or zero for each element, and carries the rest of the gradient
// over to the next round (MXNet's GradientCompression; its documentation calls the rest residual).
// Four elements a byte: 0 is zero, 1 the threshold, 2 its negative.
class TwoBit : public Codec {
 public:
  TwoBit(float threshold, size_t elements) : threshold_(threshold), elements_(elements) {}

  Buffer Encode(const char* gradient) override;
  Buffer Decode(const Buffer& bytes) override;
  size_t EncodedBytes() const override { return (elements_ + 3) / 4; }

 private:
  const float threshold_;
  const size_t elements_;
  std::vector<float> residual_;  // a worker's; empty before the first round
};

}  // namespace kvstore_ext
