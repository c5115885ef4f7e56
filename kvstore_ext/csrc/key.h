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
  int32_t store = 0;        // which of the process's stores has the key
  std::string name;         // the key as its user knows it: 3 or 'weight'
  std::string compression;  // of gradients (see codec.h); empty for none
  std::string description;  // shape, dtype and whatever else has to be equal on all workers

  std::string Pack() const {
    std::string text(kFixed, '\0');
    std::memcpy(&text[0], &elements, sizeof elements);
    std::memcpy(&text[sizeof elements], &dtype, sizeof dtype);
    std::memcpy(&text[sizeof elements + sizeof dtype], &store, sizeof store);
    return text + name + '\0' + compression + '\0' + description;
  }

  // Throws std::invalid_argument for a text that Pack did not make.
  static SliceDeclaration Unpack(const std::string& text) {
    SliceDeclaration declaration;
    const size_t end = text.size() < kFixed ? std::string::npos : text.find('\0', kFixed);
    const size_t last = end == std::string::npos ? end : text.find('\0', end + 1);
    if (last == std::string::npos) {
      throw std::invalid_argument("a key's declaration of " + std::to_string(text.size()) +
                                  " bytes cannot be read");
    }
    std::memcpy(&declaration.elements, text.data(), sizeof elements);
    std::memcpy(&declaration.dtype, text.data() + sizeof elements, sizeof dtype);
    std::memcpy(&declaration.store, text.data() + sizeof elements + sizeof dtype, sizeof store);
    SizeOf(declaration.dtype);
    declaration.name = text.substr(kFixed, end - kFixed);
    declaration.compression = text.substr(end + 1, last - end - 1);
    declaration.description = text.substr(last + 1);
    return declaration;
  }

  static constexpr size_t kFixed = sizeof(uint64_t) + sizeof(DType) + sizeof(int32_t);
};

}  // namespace kvstore_ext
