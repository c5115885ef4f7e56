// Deep gradient compression: only the largest elements travel, the others wait.
#pragma once

#include <cstdint>

#include "codecs/codec.h"
#include "support/subset.h"

namespace kvstore_ext {

struct DgcOptions {
  double ratio = 0.001;  // of the elements is sent a round, after the warm-up
  uint64_t warmup = 0;   // rounds
  uint64_t stages = 4;   // of the warm-up, each of which sends less than the one before
  double clip = 0;       // times 1 / sqrt(workers): the l2 norm to which a worker's gradient of a
                         // key is clipped, so that of independent ones the sum's is; 0: none
  bool masking = false;  // the momentum of what is sent is forgotten
};

// Lin et al., "Deep Gradient Compression: Reducing the Communication Bandwidth for Distributed
// Training" (ICLR 2018). This part sends what is not zero, exactly; DgcEncoder sees to it that
// most is (dgc_encoder.h). The sum travels likewise, unless it is smaller as it is.
//
// Bytes: for each block of 65,536 elements, the number of those that are sent, as uint32; then the
// index of each within its block, ascending, as uint16; then their values as float32.
class Dgc : public Codec {
 public:
  static CodecMethod Method();

  Dgc(const DgcOptions& options, int workers);

  Buffer Encode(const float* values, size_t elements, float scaler,
                const Draws& draws) const override;
  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                   const Draws& draws) const override;
  double bytes_per_element() const override;
  std::unique_ptr<KeyEncoder> MakeEncoder(size_t elements) const override;

  // The share of elements sent in a round; rounds count from 1. Section 3.3: during the warm-up it
  // falls exponentially, here from a quarter.
  double Ratio(uint64_t round) const;

  // The l2 norm to which a worker clips its gradient; infinity for none.
  double clip_norm() const { return clip_norm_; }

  // Section 3.3's momentum factor masking.
  bool masks() const { return options_.masking; }

  // The selected ones among so many elements from `offset` on; `values` and `selected` are the
  // whole key's.
  Buffer EncodeSelected(const float* values, size_t elements, const Subset& selected,
                        size_t offset) const;

 private:
  bool warms_up() const;

  const DgcOptions options_;
  const double clip_norm_;
};

}  // namespace kvstore_ext
