// A server's slices under Slim-DP: where cores are selected, and told.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/reduction.h"
#include "slim_dp/core_selection.h"
#include "slim_dp/slim_slice.h"
#include "support/limits.h"

namespace kvstore_ext {

// Given to a Server as its method "slim_dp". Thread-safe: reductions are made and finish under the
// server's lock, and selections come from threads of their own. Its lock is taken after the
// server's and before a slice's.
class SlimServer : public ServerMethod {
 public:
  // The limits are the server's.
  explicit SlimServer(const Limits& limits) : limits_(limits) {}

  std::unique_ptr<Reduction> MakeReduction(SliceContext context) override;
  void End(const std::string& failure) override;

  // Waits so many seconds for a round of so many slices of a store; whether it is complete, and
  // AwaitSelection would not wait. False, too, where a later one from which a core is selected is.
  bool AwaitRound(int32_t store, uint64_t round, size_t slices, double seconds);

  // What a selection of the core needs once a round is complete: so many slices of a store. Says on
  // standard error which key it waits for, from time to time; throws std::runtime_error where the
  // round is not complete a while after the patience.
  std::unique_ptr<CoreSelection> AwaitSelection(int32_t store, uint64_t round, size_t slices);

  // Tells all workers the cores that a selection has chosen.
  void SetCores(uint64_t selection, std::map<SliceName, Subset> cores);

  // Goes on with a slice as another run left it: its parameters, and its cores by selection. Throws
  // std::invalid_argument for other sizes than the slice's, and before its first value.
  void Resume(const SliceName& name, const Buffer& parameters, std::map<uint64_t, Subset> cores);

 private:
  using Snapshots = std::map<SliceName, std::shared_ptr<SlimSlice::Snapshot>>;

  std::string TakeSnapshots(int32_t store, uint64_t round, Snapshots* snapshots);
  void CheckNotEnded() const;
  SlimSlice& SliceOf(const SliceName& name);

  const Limits limits_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<SliceName, SlimSlice*> slices_;  // the server's; not to be used once that has ended
  bool ended_ = false;
  std::string failure_;
};

}  // namespace kvstore_ext
