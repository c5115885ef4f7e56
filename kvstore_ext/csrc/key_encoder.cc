#include "key_encoder.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dgc_encoder.h"
#include "terngrad.h"

namespace kvstore_ext {

float KeyEncoder::Prepare(const float* gradient, uint64_t) {
  if (!codec_->error_feedback()) {
    values_ = gradient;
    return codec_->Scaler(values_, elements_);
  }
  if (!next_.empty()) residual_.swap(next_);
  next_.assign(elements_, 0);
  for (size_t i = 0; i < elements_; ++i) {
    next_[i] = (residual_.empty() ? 0.0F : residual_[i]) + gradient[i];
  }
  values_ = next_.data();
  const float scaler = codec_->Scaler(values_, elements_);
  if (std::isnan(scaler)) Discard();
  return scaler;
}

Buffer KeyEncoder::Encode(const Slice& slice, float scaler, const Draws& draws) {
  Buffer bytes =
      EncodeValues(values_ + slice.offset, slice.length, scaler, draws.From(slice.offset));
  if (codec_->error_feedback()) {
    std::vector<float> sent(slice.length);
    codec_->AddTo(sent.data(), slice.length, bytes);
    for (size_t i = 0; i < slice.length; ++i) next_[slice.offset + i] -= sent[i];
  }
  return bytes;
}

void KeyEncoder::TakeAll(const Slice& slice, float* values) {
  std::copy_n(values_ + slice.offset, slice.length, values);
  if (codec_->error_feedback()) std::fill_n(next_.begin() + slice.offset, slice.length, 0.0F);
}

void KeyEncoder::SetState(std::vector<float> state) {
  const size_t expected = codec_->error_feedback() ? elements_ : 0;
  if (!state.empty() && state.size() != expected) {
    throw std::invalid_argument("a state of " + std::to_string(state.size()) +
                                " numbers; this key's has " + std::to_string(expected));
  }
  residual_ = std::move(state);
  next_.clear();
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
