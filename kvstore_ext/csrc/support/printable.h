// Text from other processes, as people may see it.
#pragma once

#include <string>

namespace kvstore_ext {

// The text with a question mark in the place of each byte that is no valid UTF-8 and of each
// control character but line ends and tabs. A terminal obeys those, and Python reads no text that
// is not valid.
std::string Printable(const std::string& text);

}  // namespace kvstore_ext
