// What deep gradient compression keeps of a key at a worker.
#pragma once

#include <memory>
#include <vector>

#include "codecs/dgc.h"
#include "codecs/key_encoder.h"

namespace kvstore_ext {

// Adds up gradients with momentum correction, sends the largest sums, and forgets sum and momentum
// of what it has sent (sections 3.1 to 3.3; the last one's momentum factor masking may be left
// out). A round that is discarded keeps what it would have sent; its gradient has been added up.
class DgcEncoder : public KeyEncoder {
 public:
  DgcEncoder(std::shared_ptr<const Dgc> codec, size_t elements)
      : KeyEncoder(codec, elements), dgc_(std::move(codec)) {}

  float Prepare(const float* gradient, uint64_t round) override;
  Buffer Encode(size_t offset, size_t length, float scaler, const Draws& draws) override;
  void Discard() override;
  // Without masking the momentum, so that this is plain SGD with momentum.
  void TakeAll(size_t offset, size_t length, float* values) override;
  void SetMomentum(float momentum) override { momentum_ = momentum; }
  std::vector<float> state() const override;  // the sums, then the velocities
  void SetState(std::vector<float> state) override;

 private:
  void ForgetLast();

  const std::shared_ptr<const Dgc> dgc_;
  float momentum_ = 0;
  std::vector<float> sums_;
  std::vector<float> velocities_;  // empty before the first round, and while momentum is zero
  Subset selected_;
  // Of those, in case that they have to be put back; or of all elements.
  std::vector<float> selected_sums_, selected_velocities_, all_sums_;
};

}  // namespace kvstore_ext
