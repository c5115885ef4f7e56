// A compressed key at its worker: gradients of its type into encodings, and encoded sums back.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "codec.h"
#include "key.h"
#include "key_encoder.h"
#include "slicer.h"

namespace kvstore_ext {

// The codec that a key's declaration asks for; nothing without compression. Throws
// std::invalid_argument for an unknown one, or a type that cannot be compressed.
std::shared_ptr<const Codec> CodecOf(const SliceDeclaration& declaration, int workers);

// A scaler as it travels in the text of a message.
std::string PackScaler(float scaler);
float UnpackScaler(const std::string& text);

// Prepare once a round, then Encode each slice, by one thread at a time; Decode by any thread.
class KeyCodec {
 public:
  KeyCodec(uint64_t key, const SliceDeclaration& declaration, int rank, int workers);

  const Codec& codec() const { return *codec_; }

  // As KeyEncoder's, for a gradient of the key's type.
  float Prepare(const char* gradient, uint64_t round);
  Buffer Encode(const Slice& slice, uint64_t round, float scaler);

  // The round that was prepared last does not count.
  void Discard() { encoder_->Discard(); }

  // Instead of Encode: the slice as numbers of the key's type, with what was carried over.
  Buffer TakeAll(const Slice& slice);

  // Writes an encoded sum as numbers of the key's type. Throws std::invalid_argument for bytes that
  // are none.
  void Decode(const Slice& slice, const Buffer& bytes, char* out) const;

  // Share of the elements encoded so far that came out as zero, from a sample of the slices.
  double zeros() const;

  // The last scaler with which a slice was encoded.
  float scaler() const { return scaler_; }

  // What is carried over, and how many rounds have been, those of earlier runs included. Not while
  // a round is under way.
  std::vector<float> state() const { return encoder_->state(); }
  uint64_t RoundsAfter(uint64_t round) const { return earlier_rounds_ + round; }

  // Goes on after a round as the codec that had this state after so many rounds would. Throws
  // std::invalid_argument for another number of values than the method has.
  void SetState(uint64_t round, uint64_t rounds, std::vector<float> state);

  void SetMomentum(float momentum) { encoder_->SetMomentum(momentum); }

 private:
  void Sample(const Buffer& bytes, size_t elements);

  const uint64_t key_;
  const DType dtype_;
  const size_t elements_;
  const int rank_;
  const std::shared_ptr<const Codec> codec_;
  const std::unique_ptr<KeyEncoder> encoder_;
  std::vector<float> wide_;      // a gradient that is not float32
  uint64_t earlier_rounds_ = 0;  // of earlier runs, whose random numbers have been used
  std::atomic<float> scaler_{0};
  uint64_t encoded_ = 0;                         // slices
  std::atomic<uint64_t> sampled_{0}, zeros_{0};  // elements
};

}  // namespace kvstore_ext
