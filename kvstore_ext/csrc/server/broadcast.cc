#include "server/broadcast.h"

#include "support/ranks.h"

namespace kvstore_ext {

bool Broadcast::Accept(const Message& message) {
  const SliceDeclaration& slice = context().declaration;
  const int root = message.header.root;
  if (!heard_.empty() && root != root_) {
    throw std::runtime_error("key " + slice.name + ", round " +
                             std::to_string(message.header.round) + ": " + Who("worker", heard_) +
                             " asked for the array of worker " + std::to_string(root_) +
                             ", worker " + std::to_string(message.peer) +
                             " for the array of worker " + std::to_string(root));
  }
  const bool is_root = message.peer == root;
  CheckBytes(message, is_root ? PlainBytes(slice.dtype, slice.elements) : 0);
  if (is_root) value_ = Kept(message);
  root_ = root;
  heard_.insert(message.peer);
  return true;
}

void Broadcast::Finish(uint64_t) { heard_.clear(); }

SliceAnswer Broadcast::AnswerTo(int worker) const {
  return {Encoding::kPlain, worker == root_ ? Buffer() : value_};  // the root has it
}

}  // namespace kvstore_ext
