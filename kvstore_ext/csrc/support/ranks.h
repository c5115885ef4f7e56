// Sets of ranks, as errors name them.
#pragma once

#include <map>
#include <set>
#include <string>

namespace kvstore_ext {

// For messages: "worker 1", "workers 0, 2 and 3".
inline std::string Who(const std::string& role, const std::set<int>& ranks) {
  std::string text = role + (ranks.size() == 1 ? " " : "s ");
  size_t left = ranks.size();
  for (int rank : ranks) {
    text += std::to_string(rank);
    if (--left > 0) text += left == 1 ? " and " : ", ";
  }
  return text;
}

// As Who, with the verb: "worker 1 has", "workers 0, 2 and 3 have".
inline std::string WhoHave(const std::string& role, const std::set<int>& ranks) {
  return Who(role, ranks) + (ranks.size() == 1 ? " has" : " have");
}

// Where they run, behind a message: " (worker 1 on node7, worker 3 on node9)"; nothing of those
// whose hosts are not known.
inline std::string Where(const std::string& role, const std::set<int>& ranks,
                         const std::map<int, std::string>& hosts) {
  std::string text;
  for (int rank : ranks) {
    const auto host = hosts.find(rank);
    if (host == hosts.end() || host->second.empty()) continue;
    text += (text.empty() ? " (" : ", ") + Who(role, {rank}) + " on " + host->second;
  }
  return text.empty() ? text : text + ")";
}

// Those that a map has something for.
template <typename T>
std::set<int> RanksOf(const std::map<int, T>& known) {
  std::set<int> ranks;
  for (const auto& each : known) ranks.insert(each.first);
  return ranks;
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
