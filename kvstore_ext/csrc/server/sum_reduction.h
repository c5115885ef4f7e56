// A slice whose value is the workers' sum, or what an optimizer makes of it.
#pragma once

#include <utility>

#include "server/aggregator.h"
#include "server/reduction.h"

namespace kvstore_ext {

// What plain and coded sums have in common. A round in which a worker's gradient is not finite does
// not count: its sum is nothing, or, with an optimizer, the value stays.
class SumReduction : public Reduction {
 public:
  const std::set<int>& heard() const override { return sum_.heard(); }
  bool spares_idle() const override { return true; }
  void AddNothing(int worker, double factor) override {
    sum_.AddNothing(worker);
    factor_ = factor;
  }
  bool takes_optimizer() const override { return true; }
  Buffer value() const override { return value_; }
  void SetValue(const Buffer& value) override;
  SliceAnswer AnswerTo(int) const override { return Value(); }
  SliceAnswer Value() const override { return {encoding_, value_}; }
  bool Accept(const Message& message) override;
  void Finish(uint64_t round) override;
  bool TakeGradient(Buffer* gradient) override;
  size_t held_bytes() const override { return value_.size + sum_.held_bytes(); }

 protected:
  explicit SumReduction(SliceContext given, Aggregator::AddEncoded add_encoded = nullptr)
      : Reduction(std::move(given)),
        sum_(context().declaration.dtype, context().declaration.elements, context().workers,
             context().deterministic, std::move(add_encoded)) {}

  // A worker's encoded part. Throws std::exception where the key has no encoding.
  virtual void AcceptEncoded(const Message& message) = 0;

  // Has value_ hold the numbers themselves: before there was an optimizer, it was what a sum is
  // sent as. Throws std::runtime_error where the last round left none.
  virtual void MakePlain();

  // Ends a round that counts: sets value_ and encoding_.
  virtual void FinishSum(uint64_t round) = 0;

  // By what the round's sum is multiplied, once.
  double TakeFactor() { return std::exchange(factor_, 1); }

  Aggregator sum_;
  Buffer value_;                          // the last sum, or the optimizer's
  Encoding encoding_ = Encoding::kPlain;  // of the value

 private:
  void Drop();

  double factor_ = 1;
};

}  // namespace kvstore_ext
