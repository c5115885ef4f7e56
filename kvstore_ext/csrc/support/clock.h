// Time, as the lane counts it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvstore_ext {

// Seconds on a clock that never jumps.
inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The same clock, for what is recorded.
inline int64_t NowInNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline int64_t InNanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// For messages: "2.5 s".
inline std::string Seconds(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace kvstore_ext
