// The sum of one slice over all workers, for one round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "support/buffer.h"
#include "support/dtype.h"

namespace kvstore_ext {

// Counts senders, not messages, so that a repeated message cannot stand for a missing worker.
// float16 is summed in float32, and so is what a method has encoded. Adds as contributions arrive,
// or, when deterministic, in the order of ranks, for which it keeps those that arrive early. Not
// thread-safe.
class Aggregator {
 public:
  // Adds what encoded bytes say of each element to sums of float32; throws std::invalid_argument
  // where they say nothing.
  using AddEncoded = std::function<void(float* sum, const Buffer& bytes)>;

  // With `add_encoded` contributions may be encoded; the type is then float32 or float16.
  Aggregator(DType dtype, size_t elements, int workers, bool deterministic,
             AddEncoded add_encoded = nullptr)
      : dtype_(dtype),
        elements_(elements),
        deterministic_(deterministic && workers > 2),  // two numbers add alike either way
        add_encoded_(std::move(add_encoded)),
        waiting_(deterministic_ ? workers : 0) {}

  // Adds a worker's values. Those that are `disposable` may be overwritten.
  // Precondition: !heard().count(rank) and values.size == elements * SizeOf(dtype).
  void Add(int rank, const Buffer& values, bool disposable) {
    Note(rank, {values, disposable, false, false});
  }

  // Adds a worker's encoded values; throws std::invalid_argument where they are none.
  // Precondition: there is an AddEncoded.
  void AddBytes(int rank, const Buffer& bytes) { Note(rank, {bytes, false, true, false}); }

  // Notes a worker that has nothing to add.
  void AddNothing(int rank) { Note(rank, {Buffer(), false, false, true}); }

  // Notes a worker whose values are not finite: the round's sum has no meaning.
  void AddNonFinite(int rank);

  bool non_finite() const { return non_finite_; }

  // Whether all contributions were encoded: then the sum may be, too.
  bool all_encoded() const { return summed_ > 0 && summed_ == encoded_; }

  // Forgets the round's contributions; the aggregator is then ready for the next one.
  void Drop() { TakeSum(); }

  const std::set<int>& heard() const { return heard_; }
  size_t held_bytes() const;

  // The sum times a factor, rounded to dtype; the aggregator is then ready for the next round.
  // Precondition: all workers are heard.
  Buffer Take(double factor = 1);

  // The same, not rounded: of SumTypeOf(dtype).
  Buffer TakeWide(double factor = 1);

 private:
  struct Contribution {
    Buffer values;
    bool disposable = false;
    bool encoded = false;
    bool nothing = false;
  };

  void Note(int rank, Contribution contribution);
  void AddNow(const Contribution& contribution);
  void AddWide(const Contribution& contribution);
  void WidenFirst();
  void Multiply(double factor);
  Buffer TakeSum();

  const DType dtype_;
  const size_t elements_;
  const bool deterministic_;
  const AddEncoded add_encoded_;
  std::set<int> heard_;
  bool non_finite_ = false;
  Buffer sum_;
  bool wide_ = false;  // the sum is of SumTypeOf(dtype), not of dtype
  int summed_ = 0;
  int encoded_ = 0;  // of these
  // When deterministic: contributions by rank, and the first that has not been added.
  std::vector<std::optional<Contribution>> waiting_;
  int next_ = 0;
};

}  // namespace kvstore_ext
