// A slice whose gradients, and their sum, travel as they are.
#pragma once

#include "server/sum_reduction.h"

namespace kvstore_ext {

class PlainSum : public SumReduction {
 public:
  explicit PlainSum(SliceContext context) : SumReduction(std::move(context)) {}

  bool Accept(const Message& message) override;
  void Finish(uint64_t round) override;
  bool TakeGradient(Buffer* gradient) override;
};

}  // namespace kvstore_ext
