// Messages of which some are batches of others.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "transport/batch.h"

namespace kvstore_ext {

// All that a batch holds, which is to be a whole one.
inline std::vector<Message> InsideOf(const Message& batch) {
  Batch::Contents contents = Batch::Read(batch);
  EXPECT_EQ(contents.unread, 0U);
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
