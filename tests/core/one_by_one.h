// Messages of which some are batches of others.
#pragma once

#include <utility>
#include <vector>

#include "transport/batch.h"

namespace kvstore_ext {

// The same with those of batches one by one.
inline std::vector<Message> OneByOne(std::vector<Message> messages) {
  std::vector<Message> all;
  for (Message& message : messages) {
    if (message.header.type != MessageType::kBatch) {
      all.push_back(std::move(message));
      continue;
    }
    for (Message& inside : Batch::Split(message)) all.push_back(std::move(inside));
  }
  return all;
}

}  // namespace kvstore_ext
