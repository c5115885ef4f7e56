#include "support/printable.h"

#include <cstddef>
#include <cstdint>

namespace kvstore_ext {
namespace {

// How many bytes the character that begins there has; 0 where none begins.
size_t CharacterAt(const std::string& text, size_t begin) {
  const auto byte_at = [&](size_t index) { return static_cast<uint8_t>(text[index]); };
  const uint8_t first = byte_at(begin);
  const size_t bytes = first < 0x80   ? 1
                       : first < 0xc2 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                                      : 4;
  if (bytes == 0 || first > 0xf4 || begin + bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte_at(begin + i) & 0xc0) != 0x80) return 0;
  }
  if (bytes < 3) return bytes;
  const uint8_t second = byte_at(begin + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool beyond = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : bytes;
}

// Of ASCII, and of what Latin-1 adds to it.
bool IsControl(const std::string& text, size_t begin, size_t bytes) {
  const auto first = static_cast<uint8_t>(text[begin]);
  if (bytes == 1) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(text[begin + 1]) < 0xa0;
}

}  // namespace

std::string Printable(const std::string& text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const size_t bytes = CharacterAt(text, begin);
    const bool shown = bytes > 0 && !IsControl(text, begin, bytes);
    printable += shown ? text.substr(begin, bytes) : "?";
    begin += bytes > 0 ? bytes : 1;
  }
  return printable;
}

}  // namespace kvstore_ext
