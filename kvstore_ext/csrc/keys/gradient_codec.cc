#include "keys/gradient_codec.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "keys/payload_sizes.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

// Looking for zeros means decoding, which would cost as much as encoding if done always.
constexpr uint64_t kSlicesASample = 16;

}  // namespace

void CheckCompressible(const SliceDeclaration& declaration) {
  if (SumTypeOf(declaration.dtype) == DType::kFloat32) return;
  throw std::invalid_argument("key " + declaration.name + " is of " + NameOf(declaration.dtype) +
                              "; float32 and float16 can be compressed");
}

GradientCodec::GradientCodec(const std::string& specification, int workers, bool raises)
    : specification_(specification), raises_(raises), codec_(MakeCodec(specification, workers)) {}

void GradientCodec::Attach(KeyLane* lane) {
  CheckCompressible(lane->declaration());
  encoder_ = codec_->MakeEncoder(lane->declaration().elements);
  KeyCodec::Attach(lane);
}

KeyEncoder& GradientCodec::encoder() const {
  lane();  // throws before there is one, and an encoder
  return *encoder_;
}

std::optional<Encoding> GradientCodec::Prepare(const char* gradient, uint64_t round, bool plain) {
  const float scaler = Look(gradient, round);
  if (std::isnan(scaler) && raises_) RefuseInput(round);
  if (!codec_->shares_scaler()) {
    round_scaler_ = scaler;
    return std::isnan(scaler) ? Encoding::kSkipped : plain ? Encoding::kPlain : Encoding::kEncoded;
  }
  shared_.Ask(&lane(), round, scaler, plain, [this, round](float largest, Encoding encoding) {
    round_scaler_ = largest;
    lane().AdmitRound(round, encoding);
  });
  return std::nullopt;
}

float GradientCodec::Look(const char* gradient, uint64_t round) {
  const SliceDeclaration& key = lane().declaration();
  round_ = round;
  if (key.dtype == DType::kFloat32) {
    return encoder_->Prepare(reinterpret_cast<const float*>(gradient), rounds());
  }
  wide_.resize(key.elements);
  Widen(key.dtype, reinterpret_cast<char*>(wide_.data()), gradient, key.elements);
  return encoder_->Prepare(wide_.data(), rounds());
}

void GradientCodec::CheckMessage(const Message& message) const {
  Expect(message.header.type == MessageType::kScaler && codec_->shares_scaler(),
         "its method knows no such message");
  UnpackScaler(message.text);
}

void GradientCodec::OnMessage(const Message& message) { shared_.OnMessage(message); }

Buffer GradientCodec::Encode(const Slice& slice, uint64_t round, Encoding encoding) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (encoding == Encoding::kPlain) return TakeAll(slice);
  scaler_ = round_scaler_;
  const Draws draws(codec_->seed(), lane().rank(), lane().key(), earlier_rounds_ + round);
  Buffer bytes = encoder_->Encode(slice.offset, slice.length, round_scaler_, draws);
  if (encoded_++ % kSlicesASample == 0) Sample(bytes, slice.length);
  return bytes;
}

// The slice as numbers of the key's type, with what was carried over.
Buffer GradientCodec::TakeAll(const Slice& slice) {
  const DType dtype = lane().declaration().dtype;
  Buffer values = Buffer::Allocate(slice.length * sizeof(float));
  encoder_->TakeAll(slice.offset, slice.length, reinterpret_cast<float*>(values.data.get()));
  if (dtype == DType::kFloat32) return values;
  Buffer narrow = Buffer::Allocate(PlainBytes(dtype, slice.length));
  Narrow(dtype, narrow.data.get(), values.data.get(), slice.length);
  return narrow;
}

void GradientCodec::Sample(const Buffer& bytes, size_t elements) {
  std::vector<float> values(elements);
  codec_->AddTo(values.data(), elements, bytes);
  sampled_ += elements;
  zeros_ += std::count(values.begin(), values.end(), 0.0F);
}

bool GradientCodec::Receive(const Slice& slice, uint64_t, const Result& result, char* output) {
  if (output == nullptr) return true;
  if (result.encoding == Encoding::kEncoded) {
    const DType dtype = lane().declaration().dtype;
    Decode(slice, result.payload, output + slice.offset * SizeOf(dtype));
  } else {
    WritePlain(slice, result, output);
  }
  return true;
}

// Decoded, so that whatever is wrong with it shows while another one may still come.
Result GradientCodec::Keep(const Slice& slice, const Result& result) const {
  if (result.encoding != Encoding::kEncoded) return KeyCodec::Keep(slice, result);
  Buffer values = Buffer::Allocate(PlainBytes(lane().declaration().dtype, slice.length));
  Decode(slice, result.payload, values.data.get());
  return {values, Encoding::kPlain};
}

// Writes the slice's numbers one after the other.
void GradientCodec::Decode(const Slice& slice, const Buffer& bytes, char* to) const {
  const DType dtype = lane().declaration().dtype;
  if (dtype == DType::kFloat32) {
    return codec_->DecodeSum(reinterpret_cast<float*>(to), slice.length, bytes);
  }
  std::vector<float> wide(slice.length);
  codec_->DecodeSum(wide.data(), slice.length, bytes);
  Narrow(dtype, to, reinterpret_cast<const char*>(wide.data()), slice.length);
}

ZeroCount GradientCodec::zeros() const {
  ZeroCount count;
  count.zeros = zeros_;  // first, so that it is not more than the other
  count.looked_at = sampled_;
  return count;
}

void GradientCodec::SetState(uint64_t rounds, std::vector<float> state) {
  encoder().SetState(std::move(state));
  earlier_rounds_ = rounds - round_;
}

}  // namespace kvstore_ext
