#include "key_codec.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kvstore_ext {
namespace {

// Looking for zeros means decoding, which would cost as much as encoding if done always.
constexpr uint64_t kSlicesASample = 16;

}  // namespace

std::shared_ptr<const Codec> CodecOf(const SliceDeclaration& declaration, int workers) {
  if (declaration.compression.empty()) return nullptr;
  if (SumTypeOf(declaration.dtype) != DType::kFloat32) {
    throw std::invalid_argument("key " + declaration.name + " is of " + NameOf(declaration.dtype) +
                                "; float32 and float16 can be compressed");
  }
  return MakeCodec(declaration.compression, workers);
}

std::string PackScaler(float scaler) {
  return std::string(reinterpret_cast<const char*>(&scaler), sizeof scaler);
}

float UnpackScaler(const std::string& text) {
  float scaler;
  if (text.size() != sizeof scaler) {
    throw std::invalid_argument("a scaler of " + std::to_string(text.size()) + " bytes");
  }
  std::memcpy(&scaler, text.data(), sizeof scaler);
  return scaler;
}

GradientCodec::GradientCodec(uint64_t key, const SliceDeclaration& declaration, int rank,
                             int workers)
    : key_(key),
      dtype_(declaration.dtype),
      elements_(declaration.elements),
      rank_(rank),
      codec_(CodecOf(declaration, workers)),
      encoder_(codec_->MakeEncoder(declaration.elements)) {}

float GradientCodec::Prepare(const char* gradient, uint64_t round) {
  if (dtype_ == DType::kFloat32) {
    return encoder_->Prepare(reinterpret_cast<const float*>(gradient), earlier_rounds_ + round);
  }
  wide_.resize(elements_);
  Widen(dtype_, reinterpret_cast<char*>(wide_.data()), gradient, elements_);
  return encoder_->Prepare(wide_.data(), earlier_rounds_ + round);
}

Buffer GradientCodec::Encode(const Slice& slice, uint64_t round, float scaler) {
  std::lock_guard<std::mutex> lock(mutex_);
  scaler_ = scaler;
  const Draws draws(codec_->seed(), rank_, key_, earlier_rounds_ + round);
  Buffer bytes = encoder_->Encode(slice.offset, slice.length, scaler, draws);
  if (encoded_++ % kSlicesASample == 0) Sample(bytes, slice.length);
  return bytes;
}

Buffer GradientCodec::TakeAll(const Slice& slice) {
  std::lock_guard<std::mutex> lock(mutex_);
  Buffer values = Buffer::Allocate(slice.length * sizeof(float));
  encoder_->TakeAll(slice.offset, slice.length, reinterpret_cast<float*>(values.data.get()));
  if (dtype_ == DType::kFloat32) return values;
  Buffer narrow = Buffer::Allocate(slice.length * SizeOf(dtype_));
  Narrow(dtype_, narrow.data.get(), values.data.get(), slice.length);
  return narrow;
}

void GradientCodec::Sample(const Buffer& bytes, size_t elements) {
  std::vector<float> values(elements);
  codec_->AddTo(values.data(), elements, bytes);
  sampled_ += elements;
  zeros_ += std::count(values.begin(), values.end(), 0.0F);
}

void GradientCodec::Decode(const Slice& slice, const Buffer& bytes, char* out) {
  if (dtype_ == DType::kFloat32) {
    return codec_->DecodeSum(reinterpret_cast<float*>(out), slice.length, bytes);
  }
  std::vector<float> wide(slice.length);
  codec_->DecodeSum(wide.data(), slice.length, bytes);
  Narrow(dtype_, out, reinterpret_cast<const char*>(wide.data()), slice.length);
}

double GradientCodec::zeros() const {
  const uint64_t sampled = sampled_;
  return sampled == 0 ? 0 : static_cast<double>(zeros_) / static_cast<double>(sampled);
}

void GradientCodec::SetState(uint64_t round, uint64_t rounds, std::vector<float> state) {
  encoder_->SetState(std::move(state));
  earlier_rounds_ = rounds - round;
}

}  // namespace kvstore_ext
