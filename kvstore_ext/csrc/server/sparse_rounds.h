// How often workers have pushed the keys of MXNet's own store, whose servers count pushes: an idle
// worker has to push as often as the others, with nothing in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "keys/idle.h"

namespace kvstore_ext {

// Not thread-safe: its server's lock guards it.
class SparseRounds {
 public:
  // A worker begins this round of the key with this number; `what`, in words that go behind "has".
  void Begin(int worker, uint64_t number, uint64_t round, const std::string& what) {
    Begin(worker, number, round);
    if (round == keys_[number].newest) keys_[number].what = what;
  }
  // What a worker has begun in all. Its own messages of it, with the words, may still come.
  void Begin(int worker, const Rounds& rounds) {
    for (const auto& round : rounds) Begin(worker, round.first, round.second);
  }

  // What others have begun and this worker has not; empty if there is nothing.
  std::string MissedBy(int worker) const {
    for (const auto& entry : keys_) {
      const auto own = entry.second.begun.find(worker);
      const uint64_t begun = own == entry.second.begun.end() ? 0 : own->second;
      if (begun < entry.second.newest) return entry.second.what;
    }
    return "";
  }

  // The rounds that others have begun and this worker has not, by key; which it then has.
  Rounds TakeBehind(int worker) {
    Rounds behind;
    for (auto& entry : keys_) {
      uint64_t& own = entry.second.begun[worker];
      if (own < entry.second.newest) behind[entry.first] = entry.second.newest - own;
      own = entry.second.newest;
    }
    return behind;
  }

 private:
  struct Key {
    uint64_t newest = 0;
    std::string what;               // it is
    std::map<int, uint64_t> begun;  // by worker
  };

  void Begin(int worker, uint64_t number, uint64_t round) {
    Key& key = keys_[number];
    key.newest = std::max(key.newest, round);
    uint64_t& own = key.begun[worker];
    own = std::max(own, round);
  }

  std::map<uint64_t, Key> keys_;
};

}  // namespace kvstore_ext
