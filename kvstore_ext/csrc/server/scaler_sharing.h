// One key's scalers at the server of its first slice, where all workers encode with the largest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "transport/message.h"

namespace kvstore_ext {

// Not thread-safe: its server's lock guards it. No key waits for another's.
class ScalerSharing {
 public:
  // Throws std::exception for what is no worker's scaler of the open round; of another round, where
  // any may come.
  void Check(const Message& message, bool any_round) const;

  // Takes a worker's scaler of the open round. Throws std::runtime_error for another round, or a
  // second one of a worker.
  void Take(const Message& message, const std::string& key);

  // The answer to all workers, once so many have sent theirs; the next round is then open.
  std::optional<Message> Answer(uint64_t key, size_t workers);

  // The workers that have sent theirs in the open round, and since when, by Now().
  std::set<int> senders() const;
  double since() const { return since_; }
  uint64_t round() const { return round_; }

 private:
  uint64_t round_ = 1;
  std::map<int, float> heard_;
  Encoding encoding_ = Encoding::kEncoded;  // as the first of those wants it, by rank
  double since_ = 0;
};

}  // namespace kvstore_ext
