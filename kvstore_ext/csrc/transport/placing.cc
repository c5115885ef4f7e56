#include "transport/placing.h"

#include <utility>

#include "transport/gate.h"

namespace kvstore_ext {
namespace {

// Bytes of a payload below which a place costs as much as they do.
constexpr size_t kLeastShared = 4096;

}  // namespace

std::optional<Place> PlacePayload(const Message& message, SharedMemory* memory) {
  if (memory == nullptr || message.payload.size < kLeastShared) return std::nullopt;
  return memory->Put(message.payload);
}

bool PutPayload(Message* message, SharedMemory* memory) {
  message->place = PlacePayload(*message, memory);
  if (message->place) message->payload = Buffer();
  return message->place.has_value();
}

void FetchPayload(Message* message, SharedMemory* memory) {
  const std::optional<Place> place = std::exchange(message->place, std::nullopt);
  message->payload = Buffer();
  message->payload_is_ours = false;
  if (memory == nullptr || !place) return;
  try {
    message->payload = memory->At(*place);
  } catch (const Unfit&) {
  }
}

}  // namespace kvstore_ext
