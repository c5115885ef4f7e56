// Counts the connections that ended because the other end was none of the job's.
#pragma once

#include <cstdint>

#include "security/slots.h"

namespace kvstore_ext {

// Notes the slots through which ZeroMQ tells of such connections: it prints a line for some, and
// they come again and again. They are counted instead, and the count is printed once a minute.
void CountStrangers(Slots* slots);

// So many so far in this process.
uint64_t Strangers();

}  // namespace kvstore_ext
