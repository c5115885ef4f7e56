// Messages that nobody of the job has sent.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "transport/message.h"

namespace kvstore_ext {

inline Message Of(MessageType type, uint64_t key = 0, uint64_t round = 1) {
  Message message = ControlMessage(type);
  message.header.key = key;
  message.header.round = round;
  return message;
}

inline Message With(Message message, size_t bytes) {
  message.payload = Buffer::Allocate(bytes);
  std::memset(message.payload.data.get(), 0, bytes);
  message.header.whole = static_cast<uint32_t>(bytes);
  return message;
}

inline Message WithText(Message message, std::string text) {
  message.text = std::move(text);
  return message;
}

}  // namespace kvstore_ext
