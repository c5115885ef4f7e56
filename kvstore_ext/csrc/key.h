// What workers and servers have to agree on about a key.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "dtype.h"

namespace kvstore_ext {

// Travels in the text of a slice's kInit message.
struct SliceDeclaration {
  uint64_t elements = 0;  // of the slice
  DType dtype = DType::kFloat32;
  std::string name;         // the key as its user knows it: 3 or 'weight'
  std::string description;  // shape, dtype and whatever else has to be equal on all workers

  std::string Pack() const {
    std::string text(sizeof elements + sizeof dtype, '\0');
    std::memcpy(&text[0], &elements, sizeof elements);
    std::memcpy(&text[sizeof elements], &dtype, sizeof dtype);
    return text + name + '\0' + description;
  }

  // Throws std::invalid_argument for a text that Pack did not make.
  static SliceDeclaration Unpack(const std::string& text) {
    SliceDeclaration declaration;
    const size_t fixed = sizeof elements + sizeof dtype;
    const size_t end = text.find('\0', fixed);
    if (text.size() < fixed || end == std::string::npos) {
      throw std::invalid_argument("a key's declaration of " + std::to_string(text.size()) +
                                  " bytes cannot be read");
    }
    std::memcpy(&declaration.elements, text.data(), sizeof elements);
    std::memcpy(&declaration.dtype, text.data() + sizeof elements, sizeof dtype);
    SizeOf(declaration.dtype);
    declaration.name = text.substr(fixed, end - fixed);
    declaration.description = text.substr(end + 1);
    return declaration;
  }
};

}  // namespace kvstore_ext
