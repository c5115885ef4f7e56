// What workers and servers say to each other of workers that have run out of work (store.join).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace kvstore_ext {

// How far keys have come, by key or by a sparse key's number in MXNet's own store.
using Rounds = std::map<uint64_t, uint64_t>;

// In the text of kIdle, rounds go without the worker from now on, and of kLeave. It has no
// operation under way.
struct IdleNotice {
  bool mean = false;  // see IdleWorkers::factor
  Rounds sparse;      // to server 0: begun in MXNet's own store, by number

  std::string Pack() const;
  // Throws std::invalid_argument for a text that Pack did not make.
  static IdleNotice Unpack(const std::string& text);
};

// In the text of kResume: all workers are idle, hence none is any more.
struct Resumption {
  std::set<int> missed;  // workers without which a round has gone here
  Rounds rounds;         // that are open here, by key; nothing where nobody has missed one

  std::string Pack() const;
  // Throws std::invalid_argument for a text that Pack did not make.
  static Resumption Unpack(const std::string& text);
};

}  // namespace kvstore_ext
