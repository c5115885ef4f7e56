#include "server/plain_sum.h"

namespace kvstore_ext {

PlainSum::PlainSum(SliceContext given)
    : Reduction(std::move(given)),
      sum_(context().declaration.dtype, context().declaration.elements, context().workers,
           context().deterministic) {}

bool PlainSum::Accept(const Message& message) {
  const SliceDeclaration& slice = context().declaration;
  const bool has_values = message.header.round > 0 || message.peer == 0;
  if (message.header.encoding != Encoding::kPlain) {
    throw std::runtime_error("key " + slice.name + ": worker " + std::to_string(message.peer) +
                             " sent an encoding for a key that has none");
  }
  CheckBytes(message, has_values ? slice.elements * SizeOf(slice.dtype) : 0);
  if (has_values) {
    sum_.Add(message.peer, message.payload, message.payload_is_ours);
  } else {
    sum_.AddNothing(message.peer);
  }
  return true;
}

void PlainSum::Finish(uint64_t) { value_ = sum_.Take(); }

bool PlainSum::TakeGradient(Buffer* gradient) {
  *gradient = sum_.TakeWide();
  return true;
}

}  // namespace kvstore_ext
