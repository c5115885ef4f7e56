#include "server/sum_reduction.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace kvstore_ext {

bool SumReduction::Accept(const Message& message) {
  switch (message.header.encoding) {
    case Encoding::kPlain: AddPlain(message, &sum_); break;
    case Encoding::kEncoded: AcceptEncoded(message); break;
    case Encoding::kSkipped:
      CheckBytes(message, 0);
      sum_.AddNonFinite(message.peer);
      break;
  }
  return true;
}

void SumReduction::Finish(uint64_t round) {
  if (!sum_.non_finite()) return FinishSum(round);
  Drop();
  value_ = Buffer();
  encoding_ = Encoding::kSkipped;
}

bool SumReduction::TakeGradient(Buffer* gradient) {
  MakePlain();
  encoding_ = sum_.non_finite() ? Encoding::kSkipped : Encoding::kPlain;
  if (sum_.non_finite()) {
    Drop();
    return false;
  }
  *gradient = sum_.TakeWide(TakeFactor());
  return true;
}

void SumReduction::MakePlain() {
  const SliceDeclaration& slice = context().declaration;
  if (value_.size == PlainBytes(slice.dtype, slice.elements)) return;
  throw std::runtime_error(
      "an optimizer is to update key " + slice.name +
      ", of which there is no value: its last round, without one, did not count, because a "
      "gradient was not finite; set the optimizer before the first push");
}

void SumReduction::Drop() {
  sum_.Drop();
  TakeFactor();
}

void SumReduction::SetValue(const Buffer& value) {
  if (encoding_ == Encoding::kEncoded || value.size != value_.size) {
    throw std::invalid_argument("slice " + std::to_string(context().name.second) + " of key " +
                                context().declaration.name + " has a value of " +
                                std::to_string(value_.size) + " bytes; got " +
                                std::to_string(value.size));
  }
  encoding_ = Encoding::kPlain;  // also where the last round did not count
  if (value.size > 0) std::memcpy(value_.data.get(), value.data.get(), value.size);
}

}  // namespace kvstore_ext
