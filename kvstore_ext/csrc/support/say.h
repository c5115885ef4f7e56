// What a process tells whoever started it.
#pragma once

#include <string>

namespace kvstore_ext {

// Writes a line to standard error, or drops it where whoever reads that is behind, as a terminal
// that Ctrl-S has stopped: threads of which others wait for signs of life say something, too.
// Of a long line only the beginning is written. Thread-safe.
void Say(const std::string& line);

}  // namespace kvstore_ext
