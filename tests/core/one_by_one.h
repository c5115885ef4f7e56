// Messages of which some are batches of others.
#pragma once

#include <stdexcept>
#include <utility>
#include <vector>

#include "transport/batch.h"

namespace kvstore_ext {

// All that a batch holds; throws std::logic_error where it is not whole.
inline std::vector<Message> InsideOf(const Message& batch) {
  Batch::Contents contents = Batch::Read(batch);
  if (contents.unread > 0) throw std::logic_error("the batch is not whole");
  return std::move(contents.messages);
}

// The same with those of batches one by one.
inline std::vector<Message> OneByOne(std::vector<Message> messages) {
  std::vector<Message> all;
  for (Message& message : messages) {
    if (message.header.type != MessageType::kBatch) {
      all.push_back(std::move(message));
      continue;
    }
    for (Message& inside : InsideOf(message)) all.push_back(std::move(inside));
  }
  return all;
}

}  // namespace kvstore_ext
