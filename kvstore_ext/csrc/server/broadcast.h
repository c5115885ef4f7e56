// A slice of an array that one worker, a round's root, gives to all others.
#pragma once

#include "server/reduction.h"

namespace kvstore_ext {

class Broadcast : public Reduction {
 public:
  using Reduction::Reduction;

  bool takes_gradients() const override { return false; }
  // All workers have to name the same root.
  bool Accept(const Message& message) override;
  const std::set<int>& heard() const override { return heard_; }
  void Finish(uint64_t round) override;
  SliceAnswer AnswerTo(int worker) const override;
  SliceAnswer Value() const override { return {Encoding::kPlain, value_}; }
  size_t held_bytes() const override { return value_.size; }

 private:
  std::set<int> heard_;
  int root_ = 0;  // of the open round, then of the value
  Buffer value_;
};

}  // namespace kvstore_ext
