// CRC-32C, by which bytes are known that were damaged on their way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvstore_ext {

// Of so many bytes, as of those before followed by these: Castagnoli's polynomial, from all bits
// set and inverted at the end (RFC 3720, section 12.1). By the processor's instruction where it has
// one.
uint32_t Crc32c(const char* bytes, size_t count, uint32_t before = 0);

// The same without the instruction.
uint32_t Crc32cByTable(const char* bytes, size_t count, uint32_t before = 0);

}  // namespace kvstore_ext
