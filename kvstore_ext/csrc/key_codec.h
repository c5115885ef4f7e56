// A key at its worker whose slices do not travel as they are: inputs into encodings, and results
// back.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
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

// Prepare once a round, then Encode each slice, by any threads; Decode by any thread.
class KeyCodec {
 public:
  virtual ~KeyCodec() = default;

  // How the key is cut into slices: see Codec. Then it is told which they are.
  virtual double bytes_per_element() const = 0;
  virtual size_t alignment() const = 0;
  virtual void Cut(const std::vector<Slice>&) {}

  // Whether all workers must encode with the largest of their scalers.
  virtual bool shares_scaler() const = 0;

  // The first value of a slice, which all workers have.
  virtual void Begin(const Slice&, const Buffer&) {}

  // Whether a round can be encoded yet; a server's message (kCore) may have to come first.
  virtual bool Ready(uint64_t) const { return true; }

  // Takes the round's input, which stays where it is until all slices are encoded, and returns the
  // key's scaler; not a number where the input has a value that is not finite.
  virtual float Prepare(const char* input, uint64_t round) = 0;
  virtual Buffer Encode(const Slice& slice, uint64_t round, float scaler) = 0;

  // Does what a slice's next round needs and is known before its input, should there be anything.
  virtual bool prepares_next() const { return false; }
  virtual void PrepareNext(const Slice&, uint64_t) {}

  // Whether decoding a slice is worth a thread beside the one that receives.
  virtual bool decodes_in_turn() const { return false; }

  // The round that was prepared last does not count.
  virtual void Discard() {}

  // Instead of Encode: the slice as numbers of the key's type, with what was carried over.
  virtual Buffer TakeAll(const Slice& slice) = 0;

  // Writes an encoded result as numbers of the key's type. Throws std::invalid_argument for bytes
  // that are none.
  virtual void Decode(const Slice& slice, const Buffer& bytes, char* out) = 0;

  // The last scaler with which a slice was encoded.
  virtual float scaler() const { return 0; }

  // Share of the elements encoded so far that came out as zero, from a sample of the slices.
  virtual double zeros() const { return 0; }
};

// Gradients by a Codec.
class GradientCodec : public KeyCodec {
 public:
  GradientCodec(uint64_t key, const SliceDeclaration& declaration, int rank, int workers);

  double bytes_per_element() const override { return codec_->bytes_per_element(); }
  size_t alignment() const override { return codec_->alignment(); }
  bool shares_scaler() const override { return codec_->shares_scaler(); }

  // As KeyEncoder's, for a gradient of the key's type.
  float Prepare(const char* gradient, uint64_t round) override;
  Buffer Encode(const Slice& slice, uint64_t round, float scaler) override;
  void Discard() override { encoder_->Discard(); }
  Buffer TakeAll(const Slice& slice) override;
  void Decode(const Slice& slice, const Buffer& bytes, char* out) override;
  double zeros() const override;
  float scaler() const override { return scaler_; }

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
  std::mutex mutex_;             // of the encoder, while slices are encoded
  std::vector<float> wide_;      // a gradient that is not float32
  uint64_t earlier_rounds_ = 0;  // of earlier runs, whose random numbers have been used
  std::atomic<float> scaler_{0};
  uint64_t encoded_ = 0;                         // slices
  std::atomic<uint64_t> sampled_{0}, zeros_{0};  // elements
};

}  // namespace kvstore_ext
