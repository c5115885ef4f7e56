// Payloads that go through memory which two processes of one host have in common, instead of
// through the network.
#pragma once

#include <optional>

#include "transport/message.h"
#include "transport/shared_memory.h"

namespace kvstore_ext {

// Each takes the memory that both ends have, or null where they have none. Thread-safe for
// different messages.

// Copies a message's payload there. Nothing for a payload that is to travel: a short one, or one
// that there is no room for.
std::optional<Place> PlacePayload(const Message& message, SharedMemory* memory);

// The same, after which the message says where its payload lies and has it no more. Returns whether
// it does.
bool PutPayload(Message* message, SharedMemory* memory);

// Gives a message that says where its payload lies the payload, and none where nothing lies there:
// the gate sees that, and refuses it.
void FetchPayload(Message* message, SharedMemory* memory);

}  // namespace kvstore_ext
