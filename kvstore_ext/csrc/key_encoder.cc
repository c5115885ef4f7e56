#include "key_encoder.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "dgc_encoder.h"
#include "float16.h"
#include "terngrad.h"

namespace kvstore_ext {
namespace {

bool SumIsFinite(const std::vector<float>& residual, const float* gradient) {
  int32_t largest = 0;
  for (size_t i = 0; i < residual.size(); ++i) {
    const int32_t bits = MagnitudeBits(residual[i] + gradient[i]);
    largest = largest < bits ? bits : largest;
  }
  return largest < kNotFinite;
}

}  // namespace

float KeyEncoder::Prepare(const float* gradient, uint64_t) {
  if (!codec_->error_feedback()) {
    values_ = gradient;
    return codec_->Scaler(values_, elements_);
  }
  if (residual_.empty()) {
    // The gradient is the first sum; like this, one that is not finite leaves no state behind.
    const float scaler = codec_->Scaler(gradient, elements_);
    if (scaler == scaler) {
      residual_.resize(elements_);
      for (size_t i = 0; i < elements_; ++i) residual_[i] += gradient[i];  // not -0
    }
    values_ = residual_.data();
    return scaler;
  }
  if (!SumIsFinite(residual_, gradient)) return std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < elements_; ++i) residual_[i] += gradient[i];
  values_ = residual_.data();
  return codec_->Scaler(values_, elements_);
}

Buffer KeyEncoder::Encode(const Slice& slice, float scaler, const Draws& draws) {
  Buffer bytes =
      EncodeValues(values_ + slice.offset, slice.length, scaler, draws.From(slice.offset));
  if (codec_->error_feedback()) {
    std::vector<float> sent(slice.length);
    codec_->AddTo(sent.data(), slice.length, bytes);
    for (size_t i = 0; i < slice.length; ++i) residual_[slice.offset + i] -= sent[i];
  }
  return bytes;
}

void KeyEncoder::SetState(std::vector<float> state) {
  const size_t expected = codec_->error_feedback() ? elements_ : 0;
  if (!state.empty() && state.size() != expected) {
    throw std::invalid_argument("a state of " + std::to_string(state.size()) +
                                " numbers; this key's has " + std::to_string(expected));
  }
  residual_ = std::move(state);
}

std::unique_ptr<KeyEncoder> MakeKeyEncoder(const std::string& specification, int workers,
                                           size_t elements) {
  std::shared_ptr<const Codec> codec = MakeCodec(specification, workers);
  if (auto terngrad = std::dynamic_pointer_cast<const TernGrad>(codec)) {
    return std::make_unique<TernGradEncoder>(std::move(terngrad), elements);
  }
  if (auto dgc = std::dynamic_pointer_cast<const Dgc>(codec)) {
    return std::make_unique<DgcEncoder>(std::move(dgc), elements);
  }
  return std::make_unique<KeyEncoder>(std::move(codec), elements);
}

}  // namespace kvstore_ext
