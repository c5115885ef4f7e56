// A slice whose value is the sum of what the workers send, or what an optimizer makes of it.
#pragma once

#include "server/aggregator.h"
#include "server/reduction.h"

namespace kvstore_ext {

class PlainSum : public Reduction {
 public:
  explicit PlainSum(SliceContext context);

  bool Accept(const Message& message) override;
  const std::set<int>& heard() const override { return sum_.heard(); }
  void Finish(uint64_t round) override;
  bool takes_optimizer() const override { return true; }
  bool TakeGradient(Buffer* gradient) override;
  Buffer value() const override { return value_; }
  SliceAnswer AnswerTo(int) const override { return Value(); }
  SliceAnswer Value() const override { return {Encoding::kPlain, value_}; }
  size_t held_bytes() const override { return value_.size + sum_.held_bytes(); }

 private:
  Aggregator sum_;
  Buffer value_;  // the last sum, or the optimizer's
};

}  // namespace kvstore_ext
