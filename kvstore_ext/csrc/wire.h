// Numbers and sizes in the bytes of an encoding, all little endian.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "buffer.h"

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
