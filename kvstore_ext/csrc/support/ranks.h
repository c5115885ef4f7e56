// Sets of ranks, as errors name them.
#pragma once

#include <set>
#include <string>

namespace kvstore_ext {

// For messages: "0, 2".
inline std::string Ranks(const std::set<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// Ranks below `count` that are not present.
inline std::set<int> Missing(const std::set<int>& present, int count) {
  std::set<int> missing;
  for (int rank = 0; rank < count; ++rank) {
    if (present.count(rank) == 0) missing.insert(rank);
  }
  return missing;
}

}  // namespace kvstore_ext
