// One end of a link, and what a test looks at there.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "held_messages.h"
#include "transport/link.h"

namespace kvstore_ext {

using Keys = std::vector<uint64_t>;

constexpr int kPeer = 3;

// With a window of a single part, of which credit and batches are shares.
class OneEnd : public testing::Test {
 protected:
  OneEnd() { link_.SetWindow({50000, 50000}); }

  // Takes what has left: the keys of messages with data, in order.
  Keys TakeKeys() {
    Keys keys;
    for (const Message& message : wire_->TakeAll()) {
      if (message.header.type == MessageType::kPush) keys.push_back(message.header.key);
    }
    return keys;
  }

  // Whether it is, or completes, a message.
  bool Receive(Message message) {
    bool whole = false;
    link_.Receive(std::move(message), [&whole](const Message&) { whole = true; });
    return whole;
  }

  // The peer has received so many bytes more.
  void Acknowledge(size_t bytes) {
    acknowledged_ += bytes;
    Receive(Credit(acknowledged_));
  }

  const std::shared_ptr<HeldMessages> wire_ = std::make_shared<HeldMessages>();
  Link link_{wire_, kPeer};

 private:
  uint64_t acknowledged_ = 0;
};

// A part of slice 1.
inline Message Part(size_t offset, size_t bytes, size_t whole) {
  Message part = Push(1, bytes);
  part.header.offset = static_cast<uint32_t>(offset);
  part.header.whole = static_cast<uint32_t>(whole);
  return part;
}

}  // namespace kvstore_ext
