// One bit an element both ways: signs, and the majority's.
#pragma once

#include "codecs/codec.h"

namespace kvstore_ext {

struct SignSgdOptions {
  double scale = 1;  // what a majority's sign is worth to a worker
  uint64_t seed = 0;
};

// Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems" (ICML 2018) and
// "signSGD with Majority Vote is Communication Efficient and Fault Tolerant" (ICLR 2019): workers
// send the signs of their gradients, and the server answers with the sign that most of them sent. A
// zero has either sign with the same probability, and so has a tie of the workers: always the same
// sign would move parameters that have no gradient one way, and with an even number of workers all
// of them.
//
// Bytes both ways: a bit an element, 1 above zero; see bits.h. The sum is votes, so that ties are
// exact.
class SignSgd : public Codec {
 public:
  static CodecMethod Method();

  explicit SignSgd(const SignSgdOptions& options) : options_(options) {}

  uint64_t seed() const override { return options_.seed; }
  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  // A vote of 1 or -1 for each element.
  void Check(size_t elements, const Buffer& bytes) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  bool sums_are_votes() const override { return true; }
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  // The scale, or its negative.
  void DecodeSum(float* out, size_t elements, const Buffer& bytes) const override;
  double bytes_per_element() const override { return 1.0 / 8; }

 private:
  const SignSgdOptions options_;
};

}  // namespace kvstore_ext
