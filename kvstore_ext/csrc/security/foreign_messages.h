// Keeps from ps-lite what it cannot read, in every job, with a key or without one.
#pragma once

#include <cstdint>

#include "security/slots.h"

namespace kvstore_ext {

// Notes the slots through which ps-lite receives, and says who it is, from which on it gets to see
// only messages that a process of the job would send (expected_messages.h). Others are dropped with
// all their parts and counted; one is named once a minute. Throws std::runtime_error where the
// library has not got these functions.
void DropForeignMessages(Slots* slots);

// So many so far in this process.
uint64_t ForeignMessages();

}  // namespace kvstore_ext
