#include "codecs/key_encoder.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

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

Buffer KeyEncoder::Encode(size_t offset, size_t length, float scaler, const Draws& draws) {
  Buffer bytes = EncodeValues(values_ + offset, length, scaler, draws.From(offset));
  if (codec_->error_feedback()) {
    std::vector<float> sent(length);
    codec_->AddTo(sent.data(), length, bytes);
    for (size_t i = 0; i < length; ++i) next_[offset + i] -= sent[i];
  }
  return bytes;
}

void KeyEncoder::TakeAll(size_t offset, size_t length, float* values) {
  std::copy_n(values_ + offset, length, values);
  if (codec_->error_feedback()) std::fill_n(next_.begin() + offset, length, 0.0F);
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

}  // namespace kvstore_ext
