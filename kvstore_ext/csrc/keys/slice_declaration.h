// What workers and servers have to agree on about a key.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/dtype.h"

namespace kvstore_ext {

// The method of a key whose rounds bring one worker's array to all others.
constexpr char kBroadcast[] = "broadcast";

// That of a key whose numbers travel as they are; a round does not count to which they are not
// finite.
constexpr char kSkipping[] = "skip_non_finite";

// A key and the index of one of its slices.
using SliceName = std::pair<uint64_t, uint32_t>;

// Travels in the text of a slice's kInit message.
struct SliceDeclaration {
  uint64_t offset = 0;    // of the slice in its key, in elements
  uint64_t elements = 0;  // of the slice
  DType dtype = DType::kFloat32;
  int32_t store = 0;        // which of the process's stores has the key
  std::string literal;      // the key as Python writes it: 3 or 'weight'
  std::string name;         // the key for people: 3 (dense0_weight), or 'weight'
  std::string method;       // what is done with it: "terngrad ...", "broadcast"; empty: it is added
  std::string description;  // shape, dtype and whatever else has to be equal on all workers

  // The first word of the method.
  std::string method_name() const { return method.substr(0, method.find(' ')); }

  // Whether workers mean the same key, of which they may have other names.
  bool IsOfSameKey(const SliceDeclaration& other) const {
    return literal == other.literal && description == other.description && dtype == other.dtype &&
           store == other.store && method == other.method;
  }

  // Whether numbers travel in another form than their own.
  bool has_codec() const { return !method.empty() && method != kBroadcast && method != kSkipping; }

  // Whether its rounds may come to nothing, where a gradient is not finite.
  bool may_skip() const { return has_codec() || method == kSkipping; }

  std::string Pack() const {
    const Numbers numbers{offset, elements, dtype, store};
    const std::string fixed(reinterpret_cast<const char*>(&numbers), sizeof numbers);
    return fixed + literal + '\0' + name + '\0' + method + '\0' + description;
  }

  // Throws std::invalid_argument for a text that Pack did not make.
  static SliceDeclaration Unpack(const std::string& text) {
    SliceDeclaration declaration;
    Numbers numbers;
    if (text.size() < sizeof numbers) throw CannotBeRead(text);
    std::memcpy(&numbers, text.data(), sizeof numbers);
    // Its first value travels as it is, with a number of bytes in a header's 32 bits.
    if (numbers.elements > UINT32_MAX / SizeOf(numbers.dtype) ||
        numbers.offset > UINT64_MAX - numbers.elements) {
      throw CannotBeRead(text);
    }
    declaration.offset = numbers.offset;
    declaration.elements = numbers.elements;
    declaration.dtype = numbers.dtype;
    declaration.store = numbers.store;
    size_t begin = sizeof numbers;
    for (std::string* part : {&declaration.literal, &declaration.name, &declaration.method}) {
      const size_t end = text.find('\0', begin);
      if (end == std::string::npos) throw CannotBeRead(text);
      *part = text.substr(begin, end - begin);
      begin = end + 1;
    }
    declaration.description = text.substr(begin);
    return declaration;
  }

 private:
  struct Numbers {
    uint64_t offset, elements;
    DType dtype;
    int32_t store;
  };

  static std::invalid_argument CannotBeRead(const std::string& text) {
    return std::invalid_argument("a key's declaration of " + std::to_string(text.size()) +
                                 " bytes cannot be read");
  }
};

}  // namespace kvstore_ext
