// One key under Slim-DP at its worker: takes out what travels of the local model's update, and
// merges what comes back.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "codecs/codec.h"
#include "keys/key_codec.h"
#include "keys/shared_scaler.h"
#include "slim_dp/slim_model.h"

namespace kvstore_ext {

// The key's input and output are the local model itself. Small keys are encoded and merged where
// they are, others on the threads that encode.
class SlimKey : public KeyCodec {
 public:
  explicit SlimKey(std::shared_ptr<SlimModel> model, int workers);

  std::string specification() const override { return model_->specification(); }
  double bytes_per_element(DType dtype) const override;
  size_t alignment() const override { return Subset::kWordBits; }
  void Attach(KeyLane* lane) override;

  // Takes the local model, which stays where it is until the answers are merged. Waits until all
  // cores of the round are known. Without a compression of values there is nothing to look at.
  std::optional<Encoding> Prepare(const char* local, uint64_t round, bool plain) override;

  // A slice's update since the last round, of the core and the explorer, or of everything.
  Buffer Encode(const Slice& slice, uint64_t round, Encoding encoding) override;

  // Puts the global parameters of what was communicated into the local model. From now on the slice
  // has no update, whether it was pushed or not. Parameters that come whole are the first, with
  // which local training begins, or were asked for, and are written as they are.
  bool Receive(const Slice& slice, uint64_t round, const Result& result, char* local) override;
  void Skip(uint64_t round) override { round_ = round; }

  void CheckMessage(const Message& message) const override;

  // A core that a server tells, or asks for.
  void OnMessage(const Message& message) override;
  std::set<int> awaited() const override { return shared_.awaited(); }
  bool Awaits(const Message& message) const override;

  // Takes a core that a server tells. Throws Unfit for bytes that are none.
  void SetCore(const Slice& slice, uint64_t selection, const Buffer& members);

  // All that are kept of a slice, by selection.
  std::map<uint64_t, std::shared_ptr<const Core>> CoresOf(const Slice& slice) const {
    return model_->CoresOf(parts_.at(slice.index)->number);
  }
  const std::vector<Slice>& slices() const { return lane().slices(); }

  // The parameters from which the next update is counted. Not while a round is under way.
  std::vector<float> base() const { return base_; }
  void SetBase(std::vector<float> base);

 private:
  struct Part {
    SlimModel::SliceNumber number = 0;  // set by Attach
    std::mutex mutex;                   // of all below, and of the slice's part of the base
    bool begun = false;                 // the first parameters have come
    std::shared_ptr<const Core> core;
    uint64_t round = 0;  // for which `together` is drawn; 0: none
    Subset together;
  };

  void CheckCore(const CoreMessage& core, const Slice& slice) const;
  float ScalerOfUpdate() const;
  std::optional<Encoding> Await(uint64_t round);
  void PrepareNext(const Slice& slice, uint64_t round);
  void DrawOnce(Part* part, const Slice& slice, uint64_t round);
  UpdateHeader HeaderOf(const Part& part) const;
  void TakeOut(const Subset& members, const Slice& slice, float* values) const;
  void TakeWhole(const Slice& slice, const Result& result, char* local);
  static void CheckMerges(const Part& part, const Buffer& bytes);
  void Merge(const Slice& slice, const Buffer& bytes, char* local);

  const std::shared_ptr<SlimModel> model_;
  const std::shared_ptr<const Codec> values_;  // nothing where they travel as they are
  SharedScaler shared_;
  std::vector<std::unique_ptr<Part>> parts_;  // by slice; none comes or goes once attached
  // Each slice's under its part's mutex; between rounds Prepare's thread reads it all.
  std::vector<float> base_;
  // Of the round: set by Prepare's thread, the scaler perhaps by the receiving one, before the
  // round is admitted; then only read.
  const float* local_ = nullptr;
  float limit_ = 0;  // the update's own scaler
  float scaler_ = 0;
  // The last that was prepared, or skipped by the script's thread; the receiving thread asks.
  std::atomic<uint64_t> round_{0};
};

}  // namespace kvstore_ext
