// One key's encoding at a worker: what has to look at the whole key, or lasts from round to round.
#pragma once

#include <memory>
#include <vector>

#include "codecs/codec.h"

namespace kvstore_ext {

// Prepare once a round, then Encode each slice, in any order. What the round leaves over counts
// once the next is prepared, unless it is discarded before. Not thread-safe.
class KeyEncoder {
 public:
  KeyEncoder(std::shared_ptr<const Codec> codec, size_t elements)
      : codec_(std::move(codec)), elements_(elements) {}
  virtual ~KeyEncoder() = default;

  // Takes the round's gradient, which stays where it is until all slices are encoded, and returns
  // the key's scaler (see Codec::Scaler). Where that is not a number nothing of the round counts:
  // no slice may be encoded, and what is carried over stays as it was.
  virtual float Prepare(const float* gradient, uint64_t round);

  // The `length` elements from `offset` on, a slice, as they travel. The draws are the key's.
  virtual Buffer Encode(size_t offset, size_t length, float scaler, const Draws& draws);

  // The round that was prepared last does not count: what is carried over is what it was before.
  virtual void Discard() { next_.clear(); }

  // Instead of Encode: a slice of the round as numbers, with what was carried over. Nothing is
  // left.
  virtual void TakeAll(size_t offset, size_t length, float* values);

  // The optimizer's momentum, where the method applies it in its stead.
  virtual void SetMomentum(float) {}

  // What is carried over to the next round, as float32 numbers; none before the first.
  virtual std::vector<float> state() const { return next_.empty() ? residual_ : next_; }

  // Throws std::invalid_argument for another number of values than state() has.
  virtual void SetState(std::vector<float> state);

 protected:
  const std::shared_ptr<const Codec> codec_;
  const size_t elements_;

 private:
  // What Encode sends of the round's values; the codec's encoding unless a method knows better.
  virtual Buffer EncodeValues(const float* values, size_t elements, float scaler,
                              const Draws& draws) const {
    return codec_->Encode(values, elements, scaler, draws);
  }

  std::vector<float> residual_;    // empty without error feedback, or before the first round
  std::vector<float> next_;        // the residual that the round leaves, where there is one
  const float* values_ = nullptr;  // of the round: the gradient, or with what was carried over
};

}  // namespace kvstore_ext
