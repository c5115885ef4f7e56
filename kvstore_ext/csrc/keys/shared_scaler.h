// One key's scaler at a worker, where all workers encode with the largest of theirs.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "keys/key_codec.h"

namespace kvstore_ext {

// A scaler as it travels in the text of a message.
std::string PackScaler(float scaler);
// Throws std::invalid_argument for a text that is none: a scaler is finite and at least 0, or not a
// number where a gradient is not finite.
float UnpackScaler(const std::string& text);

// Thread-safe. No key waits for another's scaler, and they overtake all data.
class SharedScaler {
 public:
  using Then = std::function<void(float scaler, Encoding encoding)>;

  // Tells the server of the key's first slice this worker's scaler in a round, not a number where
  // the round is not to count. `then` is called with what holds for all workers once it is known;
  // whether the round travels plain is up to the lowest rank that takes part.
  void Ask(KeyLane* lane, uint64_t round, float scaler, bool plain, Then then);

  // The server's answer; one for another round is dropped.
  void OnMessage(const Message& message);

  // The server that has not answered yet, if any.
  std::set<int> awaited() const;

 private:
  mutable std::mutex mutex_;  // of all below
  uint64_t round_ = 0;
  int server_ = 0;
  Then then_;  // nothing where nobody waits
};

}  // namespace kvstore_ext
