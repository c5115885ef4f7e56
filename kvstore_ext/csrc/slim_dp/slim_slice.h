// One slice of the global model under Slim-DP, at its server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "codecs/codec.h"
#include "server/aggregator.h"
#include "server/reduction.h"
#include "slim_dp/slim.h"
#include "slim_dp/slim_model.h"
#include "support/buffer.h"

namespace kvstore_ext {

// Adds the mean of what workers push, over all of them or those that push an element, and answers
// each with its own part of the parameters. A push counts only where it was made with the core that
// is here. Thread-safe: its server is one thread, a selection another.
class SlimSlice : public Reduction {
 public:
  // The parameters and the summed update of a full push, from which a core is selected.
  struct Snapshot {
    // Adds the magnitudes up, while they are in the cache.
    Snapshot(uint64_t of_round, Buffer of_parameters, Buffer of_update);

    uint64_t round;
    Buffer parameters;
    Buffer update;  // nothing for the initial parameters
    double parameters_sum, update_sum;
  };

  // `finished` is called after each round. Throws std::invalid_argument for a declaration that is
  // not Slim-DP's.
  SlimSlice(SliceContext context, std::function<void()> finished);

  bool Accept(const Message& message) override;
  const std::set<int>& heard() const override { return sum_.heard(); }
  bool spares_idle() const override { return true; }
  bool shares_scaler() const override { return values_ != nullptr && values_->shares_scaler(); }
  void AddNothing(int worker, double factor) override;
  void Finish(uint64_t round) override;
  SliceAnswer AnswerTo(int worker) const override;
  SliceAnswer Value() const override;
  size_t held_bytes() const override;

  void CheckMessage(size_t bytes) const override;

  // The core of a worker that was asked for it; another's may have come before.
  void OnMessage(const Message& message) override;
  bool Awaits(int worker) const override;

  // Goes on with these parameters and cores. Throws std::invalid_argument for others' sizes, and
  // before the first value; nothing is changed then.
  void Resume(const Buffer& parameters, std::map<uint64_t, Subset> cores);

  // Whether TakeSnapshot would give something.
  bool HasSnapshot(uint64_t round) const;

  // What a selection needs, once; nothing before the round is complete.
  std::shared_ptr<Snapshot> TakeSnapshot(uint64_t round);

  // Takes a core that was selected and tells all workers.
  void TellCore(uint64_t selection, Subset members);

 private:
  UpdateHeader CheckedHeader(const Message& message) const;
  std::shared_ptr<const Core> CoreOrAsk(int worker, const UpdateHeader& header);
  void TakeTogether(const UpdateHeader& header, const Core& core, const Buffer& bytes);
  void Apply();
  std::vector<int> CountPushes() const;
  void AddTo(float* sum, const Buffer& bytes) const;
  void SetCore(uint64_t selection, Subset members);
  std::shared_ptr<const Core> CoreOf(uint64_t selection) const;
  Subset Explored(const UpdateHeader& header, const Core& core, const Buffer& bytes) const;
  // An update's values as they travel, and how many they are.
  Buffer ValuesOf(const UpdateHeader& header, const Buffer& bytes) const;
  size_t CountOf(const UpdateHeader& header, const Subset& together) const;
  void CheckValues(const UpdateHeader& header, const Subset& together, const Buffer& bytes) const;

  const SlimOptions options_;
  const size_t elements_;
  const std::shared_ptr<const Codec> values_;
  const std::function<void()> finished_;

  mutable std::mutex mutex_;  // of all below, but for what heard() tells, which is the server's
  Aggregator sum_;
  Buffer value_;                            // the parameters, which are updated where they lie
  bool initial_ = true;                     // they are the first
  uint64_t pushed_ = 0;                     // the round that workers push, or have, over all runs
  std::optional<uint64_t> earlier_rounds_;  // of earlier runs; known once a round is complete
  bool full_ = false;                       // they push it all
  double factor_ = 1;                       // by which the round's sum is multiplied
  int zeros_ = 0;                 // workers that count as having pushed zeros of everything
  std::vector<Subset> together_;  // by worker, in this round; empty where it pushes nothing
  std::map<uint64_t, std::shared_ptr<const Core>> cores_;  // by selection, the last two
  std::map<int, uint64_t> asked_;  // by worker, the selection whose core it was asked for
  std::shared_ptr<Snapshot> snapshot_;
};

}  // namespace kvstore_ext
