// One slice of the global model under Slim-DP, at its server.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "buffer.h"
#include "codec.h"
#include "slim.h"
#include "slim_model.h"

namespace kvstore_ext {

// Adds what workers push, by the means of an aggregator whose codec it is, and answers each with
// its own part of the parameters. Not thread-safe, apart from the codec's part.
class SlimSlice : public Codec {
 public:
  // The parameters and the summed update of a full push, from which a core is selected.
  struct Snapshot {
    uint64_t round = 0;
    Buffer parameters;
    Buffer update;  // nothing for the initial parameters
  };

  enum class Fit {
    kFits,
    kOtherCore,    // the worker's core differs from this one
    kUnknownCore,  // there is none of that selection here
  };

  SlimSlice(const SliceDeclaration& declaration, uint64_t key, int workers);

  size_t elements() const { return elements_; }

  // The memory of the parameters, which is updated where it lies.
  void SetValue(const Buffer& value);

  // Looks at what a worker pushes before it is added; whether it is the first in this round. Throws
  // std::invalid_argument for bytes that are no update, or of another round than the others'.
  Fit Accept(int worker, bool first, const Buffer& bytes);

  // The selection with whose core an update was made. Throws as Accept.
  static uint64_t SelectionOf(const Buffer& bytes);

  // Adds the mean of the updates, from their sum.
  void Apply(const Buffer& sum);

  // Goes on with these parameters and cores. Throws std::invalid_argument for others' sizes.
  void Resume(const Buffer& parameters, std::map<uint64_t, Subset> cores);

  // The parameters of what the worker has communicated in this round.
  Buffer AnswerTo(int worker) const;

  // What a selection needs, once; nothing before the round is complete.
  std::shared_ptr<Snapshot> TakeSnapshot(uint64_t round);

  void SetCore(uint64_t selection, Subset members);

  // nullptr where there is none.
  std::shared_ptr<const Core> CoreOf(uint64_t selection) const;

  // Of parameters that it keeps beside the value.
  size_t held_bytes() const;

  void AddTo(float* sum, size_t elements, const Buffer& bytes) const override;
  Buffer Encode(const float*, size_t, float, const Draws&) const override;
  double bytes_per_element() const override { return sizeof(float); }

 private:
  Subset Explored(const UpdateHeader& header, const Core& core, const Buffer& bytes) const;
  Buffer ValuesOf(const UpdateHeader& header, const Buffer& bytes) const;

  const SlimOptions options_;
  const uint64_t key_;
  const uint64_t offset_;
  const size_t elements_;
  const int workers_;
  const std::shared_ptr<const Codec> values_;
  Buffer value_;
  uint64_t pushed_ = 0;                                    // the round that workers push, or have
  bool full_ = false;                                      // they push it all
  std::vector<Subset> together_;                           // by worker, in this round
  std::map<uint64_t, std::shared_ptr<const Core>> cores_;  // by selection, the last two
  std::shared_ptr<Snapshot> snapshot_;
};

}  // namespace kvstore_ext
