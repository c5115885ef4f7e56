// What workers and servers have to agree on about a key.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/dtype.h"

namespace kvstore_ext {

// A key and the index of one of its slices.
using SliceName = std::pair<uint64_t, uint32_t>;

// Travels in the text of a slice's kInit message.
struct SliceDeclaration {
  uint64_t offset = 0;    // of the slice in its key, in elements
  uint64_t elements = 0;  // of the slice
  DType dtype = DType::kFloat32;
  int32_t store = 0;        // which of the process's stores has the key
  std::string name;         // the key as its user knows it: 3 or 'weight'
  std::string method;       // what is done with it: "terngrad ...", "broadcast"; empty: it is added
  std::string description;  // shape, dtype and whatever else has to be equal on all workers

  // The first word of the method.
  std::string method_name() const { return method.substr(0, method.find(' ')); }

  std::string Pack() const {
    const Numbers numbers{offset, elements, dtype, store};
    const std::string fixed(reinterpret_cast<const char*>(&numbers), sizeof numbers);
    return fixed + name + '\0' + method + '\0' + description;
  }

  // Throws std::invalid_argument for a text that Pack did not make.
  static SliceDeclaration Unpack(const std::string& text) {
    SliceDeclaration declaration;
    Numbers numbers;
    const size_t fixed = sizeof numbers;
    const size_t end = text.size() < fixed ? std::string::npos : text.find('\0', fixed);
    const size_t last = end == std::string::npos ? end : text.find('\0', end + 1);
    if (last == std::string::npos) {
      throw std::invalid_argument("a key's declaration of " + std::to_string(text.size()) +
                                  " bytes cannot be read");
    }
    std::memcpy(&numbers, text.data(), fixed);
    SizeOf(numbers.dtype);
    declaration.offset = numbers.offset;
    declaration.elements = numbers.elements;
    declaration.dtype = numbers.dtype;
    declaration.store = numbers.store;
    declaration.name = text.substr(fixed, end - fixed);
    declaration.method = text.substr(end + 1, last - end - 1);
    declaration.description = text.substr(last + 1);
    return declaration;
  }

 private:
  struct Numbers {
    uint64_t offset, elements;
    DType dtype;
    int32_t store;
  };
};

}  // namespace kvstore_ext
