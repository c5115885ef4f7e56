// A slice whose gradients, and their sum, travel as a Codec makes them.
#pragma once

#include <memory>
#include <vector>

#include "codecs/codec.h"
#include "server/sum_reduction.h"

namespace kvstore_ext {

// A sum takes along what earlier ones have left out, where the codec has error feedback.
class CodedSum : public SumReduction {
 public:
  // Throws std::invalid_argument for an unknown codec or a type that cannot be compressed.
  explicit CodedSum(SliceContext context);

  bool shares_scaler() const override { return codec_->shares_scaler(); }
  std::vector<float> carried_over() const override { return carried_over_; }
  void CarryOver(uint64_t rounds, uint64_t open_round, std::vector<float> values) override;
  size_t held_bytes() const override;

 private:
  void AcceptEncoded(const Message& message) override;
  void MakePlain() override;
  void FinishSum(uint64_t round) override;
  void Encode(uint64_t round);
  void SetPlain(const Buffer& wide);

  const std::shared_ptr<const Codec> codec_;
  float scaler_ = 0;  // of what was added last: the same for all where the codec shares it
  std::vector<float> carried_over_;  // empty where sums lose nothing
  uint64_t earlier_rounds_ = 0;      // of an earlier run, whose random numbers have been used
};

}  // namespace kvstore_ext
