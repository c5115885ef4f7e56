// Where a payload lies in memory that two processes of one host have in common.
#pragma once

#include <cstdint>

namespace kvstore_ext {

// As a message says it, in place of the payload; see shared_memory.h.
struct Place {
  uint32_t block = 0;
  uint32_t bytes = 0;
  uint64_t ticket = 0;  // of this payload alone
};
static_assert(sizeof(Place) == 16, "a place crosses the wire as it lies in memory");

}  // namespace kvstore_ext
