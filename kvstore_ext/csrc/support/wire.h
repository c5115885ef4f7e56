// Numbers and sizes in the bytes of an encoding, all little endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "support/buffer.h"

namespace kvstore_ext {

// At any address.
template <typename Number>
Number Load(const char* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <typename Number>
void Store(char* to, Number number) {
  std::memcpy(to, &number, sizeof number);
}

// Of so many bytes. Byte by byte, which the compiler makes fewer loads of: a copy into a part of a
// number would have the processor wait until it can load the whole one.
template <size_t kBytes>
uint64_t LoadBytes(const char* from) {
  uint64_t number = 0;
  for (size_t i = 0; i < kBytes; ++i) {
    number |= static_cast<uint64_t>(static_cast<unsigned char>(from[i])) << 8 * i;
  }
  return number;
}

inline size_t DivideUp(size_t number, size_t by) { return number / by + (number % by > 0 ? 1 : 0); }

// Throws std::invalid_argument for another number of bytes than the elements take.
inline void CheckSize(const char* method, const Buffer& bytes, size_t elements, size_t expected) {
  if (bytes.size == expected) return;
  throw std::invalid_argument(std::to_string(bytes.size) + " bytes are no " + method +
                              " encoding of " + std::to_string(elements) + " elements; it has " +
                              std::to_string(expected));
}

// Throws std::invalid_argument for what stands in bytes of the right number.
[[noreturn]] inline void RefuseBytes(const char* method, const std::string& found) {
  throw std::invalid_argument(found + " in what should be a " + method + " encoding");
}

}  // namespace kvstore_ext
