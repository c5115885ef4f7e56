// A key at its worker: what the worker knows of it, and what its codec may ask.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "worker/worker.h"

namespace kvstore_ext {

// Made once and kept as long as the worker. The codec is called as KeyCodec says.
class Worker::Key : public KeyLane {
 public:
  Key(Worker* worker, uint64_t id, const SliceDeclaration& declared,
      std::shared_ptr<KeyCodec> own_codec, std::vector<Slice> own_slices);

  uint64_t key() const override { return id; }
  const SliceDeclaration& declaration() const override { return declared; }
  const std::vector<Slice>& slices() const override { return cut; }
  int rank() const override { return worker->options_.rank; }
  bool is_idle() const override { return worker->idle_; }
  void SendControl(int server, Message message) override;
  void SendData(int server, Message message) override;
  void AdmitRound(uint64_t round, Encoding encoding) override;
  bool IsMissing(const Slice& slice) override;
  void SendAgain(const Slice& slice) override;
  void WriteInTurn(const Slice& slice, uint64_t round, const Result& result,
                   std::function<void()> write) override;
  void RunLast(std::function<void()> task) override;

  // The servers from which something must come before the operation ends. Under the mutex, as the
  // two below.
  std::set<int> AwaitedServers() const;

  // The round that was begun last, which an operation is about: with kPull that is its result.
  uint64_t last_round() const { return rounds - 1; }
  bool IsLast(uint64_t number) const { return number == last_round(); }

  Worker* const worker;
  const uint64_t id;
  const SliceDeclaration declared;
  const std::vector<Slice> cut;
  const std::shared_ptr<KeyCodec> codec;
  // Written under the worker's mutex, and read by all.
  std::atomic<bool> priority_learned{false};
  std::atomic<int> priority{0};

  std::mutex mutex;     // of all below
  uint64_t rounds = 0;  // begun
  bool busy = false;    // an operation is open
  bool missed = false;  // a round, for which no gradient could be computed
  Operation operation;
  std::vector<bool> left;        // slices of the last round that were given to their links
  std::vector<bool> arrived;     // those whose results have come
  size_t missing = 0;            // slices that have not come, are not written, or go once more
  std::shared_ptr<Round> round;  // the last that was begun
  bool admitted = false;         // its slices are, or can be, encoded
  bool skipped = false;          // the last that has ended did not count
  double since = 0;              // when the operation began, by Now()
  std::vector<Result> kept;      // slices of a result that no operation has taken yet
};

}  // namespace kvstore_ext
