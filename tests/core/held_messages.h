// Messages of slices, and a transport that holds them until the test delivers them.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "one_by_one.h"
#include "transport/transport.h"

namespace kvstore_ext {

// For links on one thread.
class HeldMessages : public Transport {
 public:
  void Start(MessageHandler) override {}
  void Send(const Message& message) override { held_.push_back(message); }
  void Stop() override {}

  bool empty() const { return held_.empty(); }

  // The first one sent of those that are left.
  Message TakeFirst() {
    Message first = std::move(held_.front());
    held_.pop_front();
    return first;
  }

  // Those of batches one by one.
  std::vector<Message> TakeAll() {
    std::vector<Message> all;
    while (!held_.empty()) all.push_back(TakeFirst());
    return OneByOne(std::move(all));
  }

 private:
  std::deque<Message> held_;
};

// The byte of a slice at an offset; another one for each key.
inline char ByteOf(uint64_t key, size_t offset) {
  return static_cast<char>(key * 31 + offset * 7 + offset / 256);
}

// A gradient slice of so many bytes.
inline Message Push(uint64_t key, size_t bytes, int priority = 0) {
  Message message;
  message.priority = priority;
  message.header.type = MessageType::kPush;
  message.header.key = key;
  message.text = "text of key " + std::to_string(key);
  message.payload = Buffer::Allocate(bytes);
  for (size_t i = 0; i < bytes; ++i) message.payload.data.get()[i] = ByteOf(key, i);
  return message;
}

// Whether it arrived as Push made it.
inline bool IsWhole(const Message& message, size_t bytes) {
  const uint64_t key = message.header.key;
  bool equal = message.header.type == MessageType::kPush && message.payload.size == bytes &&
               message.text == "text of key " + std::to_string(key);
  for (size_t i = 0; equal && i < bytes; ++i) {
    equal = message.payload.data.get()[i] == ByteOf(key, i);
  }
  return equal;
}

// That so many bytes have been received so far.
inline Message Credit(uint64_t bytes) {
  Message message = ControlMessage(MessageType::kCredit);
  message.header.credit = static_cast<uint32_t>(bytes);
  return message;
}

}  // namespace kvstore_ext
