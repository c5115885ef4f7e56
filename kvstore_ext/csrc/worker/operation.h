// What a store asks of a key at its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kvstore_ext {

// An operation of one of three kinds. kPush and kBroadcast open the key's next round: round 0 sets
// the value, to rank 0's input or the root's; later ones send the input as a gradient to be added,
// or give the root's input to all others. With `output` an operation ends when the round's result
// lies there; without, the result is kept for a later kPull, which opens no round.
struct Operation {
  enum class Kind { kPull, kPush, kBroadcast };

  uint64_t key = 0;
  Kind kind = Kind::kPull;
  const char* input = nullptr;  // the key's elements; stays valid and unchanged until `done`, and
                                // valid for ever if that tells of a failure
  char* output = nullptr;       // likewise; may be the input
  std::shared_ptr<void> owner;  // of the input's memory, if it has one. What is to leave keeps it:
                                // whoever forges the answer could end the operation before
  int priority = 0;             // the caller's, used until the order is learned
  bool plain = false;           // not compressed this time, whatever the key's codec
  int root = 0;                 // of a kBroadcast: the worker whose input goes to all others
  uint32_t step = 0;            // how often the worker has pushed its most pushed key
  std::string settings;  // of the optimizer, from this round on: rank 0's for the servers', or
                         // each worker's own, which must be equal; empty: as before
  double pushed = 0;     // when the store was asked, by Now()
  // Called exactly once, from any thread, with the reason of a failure or an empty string.
  std::function<void(const std::string&)> done;

  bool opens_round() const { return kind != Kind::kPull; }
};

}  // namespace kvstore_ext
