// A key whose gradients, and their sums, travel as a Codec makes them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codecs/codec.h"
#include "codecs/key_encoder.h"
#include "keys/key_codec.h"
#include "keys/shared_scaler.h"

namespace kvstore_ext {

// Throws std::invalid_argument for a key whose type cannot be compressed.
void CheckCompressible(const SliceDeclaration& declaration);

class GradientCodec : public KeyCodec {
 public:
  // The specification is a codec's: see MakeCodec. A gradient that is not finite has the round not
  // count, or, where it `raises`, ends the job. Throws std::invalid_argument for an unknown
  // specification.
  GradientCodec(const std::string& specification, int workers, bool raises);

  std::string specification() const override { return specification_; }
  double bytes_per_element(DType) const override { return codec_->bytes_per_element(); }
  size_t alignment() const override { return codec_->alignment(); }
  void Attach(KeyLane* lane) override;

  // Waits for the other workers where they share scalers.
  std::optional<Encoding> Prepare(const char* gradient, uint64_t round, bool plain) override;
  Buffer Encode(const Slice& slice, uint64_t round, Encoding encoding) override;
  bool Receive(const Slice& slice, uint64_t round, const Result& result, char* output) override;
  Result Keep(const Slice& slice, const Result& result) const override;
  void Discard() override { encoder_->Discard(); }
  void Skip(uint64_t round) override { round_ = round; }
  void CheckMessage(const Message& message) const override;
  void OnMessage(const Message& message) override;
  std::set<int> awaited() const override { return shared_.awaited(); }
  ZeroCount zeros() const override;
  float scaler() const override { return scaler_; }

  // What is carried over. This and the calls below not while a round is under way, and not before a
  // key has the codec: std::logic_error.
  std::vector<float> state() const { return encoder().state(); }

  // How many rounds have been, those of earlier runs included.
  uint64_t rounds() const { return earlier_rounds_ + round_; }

  // Goes on as the codec that had this state after so many rounds would. Throws
  // std::invalid_argument for another number of values than the method has.
  void SetState(uint64_t rounds, std::vector<float> state);

  void SetMomentum(float momentum) { encoder().SetMomentum(momentum); }

 private:
  KeyEncoder& encoder() const;
  float Look(const char* gradient, uint64_t round);
  Buffer TakeAll(const Slice& slice);
  void Decode(const Slice& slice, const Buffer& bytes, char* to) const;
  void Sample(const Buffer& bytes, size_t elements);

  const std::string specification_;
  const bool raises_;
  const std::shared_ptr<const Codec> codec_;
  SharedScaler shared_;
  // Made by Attach. Prepare's thread's, then under mutex_ while slices are encoded, then Discard's.
  std::unique_ptr<KeyEncoder> encoder_;
  std::vector<float> wide_;  // a gradient that is not float32; of Prepare's thread
  // The last that was prepared or skipped. Of Prepare's thread, or the script's while no round is
  // under way.
  uint64_t round_ = 0;
  uint64_t earlier_rounds_ = 0;  // of earlier runs, whose random numbers have been used; likewise
  float round_scaler_ = 0;       // of the round: set before it is admitted, then only read
  std::mutex mutex_;             // of encoded_; and of the encoder, while slices are encoded
  uint64_t encoded_ = 0;         // slices
  std::atomic<float> scaler_{0};
  std::atomic<uint64_t> sampled_{0}, zeros_{0};  // elements
};

}  // namespace kvstore_ext
