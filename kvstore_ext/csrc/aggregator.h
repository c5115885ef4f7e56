// The sum of one slice over all workers, for one round.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "buffer.h"
#include "dtype.h"

namespace kvstore_ext {

// Counts senders, not messages, so that a repeated message cannot stand for a missing worker.
// float16 is summed in float32. Adds as contributions arrive, or, when deterministic, in the order
// of ranks, for which it keeps those that arrive early. Not thread-safe.
class Aggregator {
 public:
  Aggregator() = default;
  Aggregator(DType dtype, size_t elements, int workers, bool deterministic)
      : dtype_(dtype),
        elements_(elements),
        workers_(workers),
        deterministic_(deterministic && workers > 2),  // two numbers add alike either way
        waiting_(deterministic_ ? workers : 0) {}

  // Adds a worker's values. Those that are `disposable` may be overwritten.
  // Precondition: !heard().count(rank) and values.size == elements * SizeOf(dtype).
  void Add(int rank, const Buffer& values, bool disposable);

  // Notes a worker that has nothing to add.
  void AddNothing(int rank) { heard_.insert(rank); }

  bool complete() const { return static_cast<int>(heard_.size()) == workers_; }
  const std::set<int>& heard() const { return heard_; }
  std::set<int> missing() const;
  size_t held_bytes() const;

  // The sum, rounded to dtype; the aggregator is then ready for the next round.
  // Precondition: complete().
  Buffer Take();

  // The same, not rounded: of SumTypeOf(dtype).
  Buffer TakeWide();

 private:
  void AddNow(const Buffer& values, bool disposable);
  void WidenFirst();
  Buffer TakeSum();

  DType dtype_ = DType::kFloat32;
  size_t elements_ = 0;
  int workers_ = 0;
  bool deterministic_ = false;
  std::set<int> heard_;
  Buffer sum_;  // of SumTypeOf(dtype) once summed_ > 1, of dtype before
  int summed_ = 0;
  std::vector<Buffer> waiting_;  // by rank, when deterministic
};

}  // namespace kvstore_ext
