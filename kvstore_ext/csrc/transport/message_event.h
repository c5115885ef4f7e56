// What a trace tells of a message.
#pragma once

#include "trace/event.h"
#include "transport/message.h"

namespace kvstore_ext {

// Its bytes are those of the payload.
inline Event EventOf(EventKind kind, const Message& message) {
  Event event;
  event.kind = kind;
  event.key = message.header.key;
  event.round = static_cast<uint32_t>(message.header.round);
  event.slice = static_cast<int32_t>(message.header.slice);
  event.bytes = static_cast<uint32_t>(message.payload.size);
  event.priority = message.priority;
  event.peer = static_cast<int16_t>(message.peer);
  event.message = static_cast<uint8_t>(message.header.type);
  return event;
}

}  // namespace kvstore_ext
