// One key under Slim-DP at its worker: takes out what travels of the local model's update, and
// merges what comes back.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "key_codec.h"
#include "slim_model.h"

namespace kvstore_ext {

// The key's input and output are the local model itself. Encode and Decode may run for several
// slices at a time.
class SlimKey : public KeyCodec {
 public:
  // The key's slices are cut by what bytes_per_element says, and then given here.
  SlimKey(uint64_t key, const SliceDeclaration& declaration, int workers,
          std::shared_ptr<SlimModel> model);
  void Cut(const std::vector<Slice>& slices) override;

  bool shares_scaler() const override;
  double bytes_per_element() const override;
  size_t alignment() const override;
  bool Ready(uint64_t round) const override { return model_->Ready(round); }

  // Takes the local model, which stays where it is until the answers are merged. Without a
  // compression of values there is nothing to look at.
  float Prepare(const char* local, uint64_t round) override;

  // A slice's update since the last round, of the core and the explorer, or of everything.
  Buffer Encode(const Slice& slice, uint64_t round, float scaler) override;

  // Puts the global parameters of what was communicated into the local model. From now on the slice
  // has no update, whether it was pushed or not.
  void Decode(const Slice& slice, const Buffer& bytes, char* local) override;

  // The parameters with which local training begins.
  void Begin(const Slice& slice, const Buffer& values) override;

  // Values that travel whole are not this key's.
  Buffer TakeAll(const Slice& slice) override;

  // Draws what a round will communicate, while gradients are computed; nothing where the round is
  // not ready.
  bool prepares_next() const override { return true; }
  bool decodes_in_turn() const override { return true; }
  void PrepareNext(const Slice& slice, uint64_t round) override;

  // Takes a core that a server tells.
  void SetCore(const Slice& slice, uint64_t selection, const Buffer& members);

  // The one that holds in a round, which is ready.
  std::shared_ptr<const Core> CoreOf(const Slice& slice, uint64_t round) const;

  // All that are kept of a slice, by selection.
  std::map<uint64_t, std::shared_ptr<const Core>> CoresOf(const Slice& slice) const {
    return model_->CoresOf(parts_.at(slice.index)->place);
  }

  // The parameters from which the next update is counted.
  std::vector<float> base() const { return base_; }
  void SetBase(std::vector<float> base);

 private:
  struct Part {
    SlimModel::Place place = 0;
    std::mutex mutex;  // of all below
    std::shared_ptr<const Core> core;
    uint64_t round = 0;  // for which `together` is drawn; 0: none
    Subset together;
  };

  void DrawOnce(Part* part, const Slice& slice, uint64_t round);
  UpdateHeader HeaderOf(const Part& part) const;
  void TakeOut(const Subset& members, const Slice& slice, float* values) const;

  const uint64_t key_;
  const size_t elements_;
  const std::shared_ptr<SlimModel> model_;
  const std::shared_ptr<const Codec> values_;  // nothing where they travel as they are
  std::vector<std::unique_ptr<Part>> parts_;   // by slice
  std::vector<float> base_;
  const float* local_ = nullptr;
};

}  // namespace kvstore_ext
