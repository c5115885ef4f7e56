// A worker's view of one model under Slim-DP: which core holds in a round, and how many elements of
// each slice the explorer has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "slim_dp/slim.h"
#include "support/subset.h"

namespace kvstore_ext {

// What is always communicated of a slice, while a selection holds.
struct Core {
  Subset members;
  uint64_t signature = 0;  // the members'

  explicit Core(Subset chosen) : members(std::move(chosen)), signature(members.signature()) {}
};

// All keys of a store. Thread-safe.
class SlimModel {
 public:
  // A slice's number in the model, by which the order of all elements is that of the keys'
  // declarations.
  using SliceNumber = size_t;

  // Throws std::invalid_argument for a specification that is none: see SlimOptions::Parse.
  SlimModel(const std::string& specification, int rank)
      : specification_(specification), options_(SlimOptions::Parse(specification)), rank_(rank) {}

  const std::string& specification() const { return specification_; }
  const SlimOptions& options() const { return options_; }
  int rank() const { return rank_; }

  // Throws std::logic_error once the sizes are set.
  SliceNumber Add(size_t elements);

  // How many elements travel in a round over all keys, the core's included; no round is ready
  // before. Throws std::invalid_argument where the core has more than that, or both than there are.
  void SetSizes(size_t core, size_t together);

  // What a selection has chosen of a slice, in place of an earlier answer; those before the last
  // two are forgotten.
  void SetCore(SliceNumber number, uint64_t selection, Subset members);

  // The core of a slice in a round, which is ready.
  std::shared_ptr<const Core> CoreOf(SliceNumber number, uint64_t round) const;

  // All that are kept of a slice, by selection.
  std::map<uint64_t, std::shared_ptr<const Core>> CoresOf(SliceNumber number) const;

  // Whether a slice's core of this selection is here.
  bool HasCore(SliceNumber number, uint64_t selection) const;

  // The selection whose core holds in a round, and the last that can have been made by then.
  uint64_t SelectionIn(uint64_t round) const;
  uint64_t LastSelectionBy(uint64_t round) const;

  // Whether the cores of all slices in a round are known, and so how large each explorer is.
  bool Ready(uint64_t round) const;

  // Whether a round is ready; if not, `then` is called once it is, on the thread that has told the
  // last core of it and without the model's lock.
  bool ReadyOr(uint64_t round, std::function<void()> then);

  // Elements of a slice's explorer in a round, which is ready: the slices' shares of a sample that
  // is drawn from all elements outside the core, uniformly without replacement.
  size_t ExplorersOf(SliceNumber number, uint64_t round);

  // Goes on after so many rounds of an earlier run, whose cores are told anew.
  void Resume(uint64_t earlier_rounds);

  // A round over all runs.
  uint64_t RoundOf(uint64_t round) const;

 private:
  uint64_t SelectionOf(uint64_t round) const {
    return options_.SelectionOf(earlier_rounds_ + round);
  }
  bool IsReady(uint64_t round) const;
  std::vector<std::function<void()>> TakeReady();
  const std::shared_ptr<const Core>& Find(SliceNumber number, uint64_t round) const;
  size_t Outside(SliceNumber number, uint64_t round) const;

  const std::string specification_;
  const SlimOptions options_;
  const int rank_;

  mutable std::mutex mutex_;  // of all below
  uint64_t earlier_rounds_ = 0;
  size_t core_ = 0;
  size_t together_ = 0;
  bool sized_ = false;
  std::vector<size_t> elements_;                    // by number
  std::vector<std::shared_ptr<const Core>> fixed_;  // by number; empty where cores are selected
  std::map<uint64_t, std::map<SliceNumber, std::shared_ptr<const Core>>> cores_;  // by selection
  std::map<uint64_t, std::vector<size_t>> explorers_;                // by round, the last few
  std::vector<std::pair<uint64_t, std::function<void()>>> waiting_;  // with their rounds
};

}  // namespace kvstore_ext
