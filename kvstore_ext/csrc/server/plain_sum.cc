#include "server/plain_sum.h"

namespace kvstore_ext {

void PlainSum::AcceptEncoded(const Message& message) {
  throw std::runtime_error("key " + context().declaration.name + ": worker " +
                           std::to_string(message.peer) +
                           " sent an encoding for a key that has none");
}

void PlainSum::FinishSum(uint64_t) {
  value_ = sum_.Take(TakeFactor());
  encoding_ = Encoding::kPlain;
}

}  // namespace kvstore_ext
