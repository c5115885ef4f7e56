#include "server/plain_sum.h"

namespace kvstore_ext {

bool PlainSum::Accept(const Message& message) {
  if (message.header.encoding != Encoding::kPlain) {
    throw std::runtime_error("key " + context().declaration.name + ": worker " +
                             std::to_string(message.peer) +
                             " sent an encoding for a key that has none");
  }
  AddPlain(message, &sum_);
  return true;
}

void PlainSum::Finish(uint64_t) { value_ = sum_.Take(TakeFactor()); }

bool PlainSum::TakeGradient(Buffer* gradient) {
  *gradient = sum_.TakeWide(TakeFactor());
  return true;
}

}  // namespace kvstore_ext
