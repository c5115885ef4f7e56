// A slice whose gradients, and their sum, travel as they are.
#pragma once

#include "server/sum_reduction.h"

namespace kvstore_ext {

class PlainSum : public SumReduction {
 public:
  explicit PlainSum(SliceContext context) : SumReduction(std::move(context)) {}

 private:
  void AcceptEncoded(const Message& message) override;
  void FinishSum(uint64_t round) override;
};

}  // namespace kvstore_ext
