// Codes of one to eight bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvstore_ext {

// Code i, below 2^width, takes the bits from i * width on, counted from the lowest of the first
// byte; ceil(count * width / 8) bytes are written. Precondition: 1 <= width <= 8.
void PackBits(const uint8_t* codes, size_t count, int width, char* bytes);

// The way back. Reads ceil(count * width / 8) bytes.
void UnpackBits(const char* bytes, size_t count, int width, uint8_t* codes);

}  // namespace kvstore_ext
