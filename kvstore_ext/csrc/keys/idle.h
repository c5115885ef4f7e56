// What workers and servers say to each other of workers that have run out of work (store.join).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace kvstore_ext {

// How far keys have come, by key or by a sparse key's number in MXNet's own store.
using Rounds = std::map<uint64_t, uint64_t>;

// The text of kIdle, by which a worker asks that rounds go without it, and of kLeave. A worker that
// sends either has no operation under way.
struct IdleNotice {
  bool mean = false;  // see IdleWorkers::factor
  Rounds sparse;      // to server 0: begun in MXNet's own store, by number

  std::string Pack() const;
  // Throws std::invalid_argument for a text that Pack did not make.
  static IdleNotice Unpack(const std::string& text);
};

// The text of kResume, by which a server answers once all workers are idle: none is any more.
struct Resumption {
  std::set<int> missed;  // workers without which a round has gone here
  Rounds rounds;         // that are open here, by key; nothing where nobody has missed one

  std::string Pack() const;
  // Throws std::invalid_argument for a text that Pack did not make.
  static Resumption Unpack(const std::string& text);
};

}  // namespace kvstore_ext
