#include "codecs/dgc_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "codecs/kernels/kernels.h"
#include "codecs/select_largest.h"
#include "support/float16.h"

namespace kvstore_ext {

float DgcEncoder::Prepare(const float* gradient, uint64_t round) {
  ForgetLast();
  constexpr float kNoScaler = std::numeric_limits<float>::quiet_NaN();
  const Moments moments = kernels().moments(gradient, elements_);
  if (!moments.finite()) return kNoScaler;
  const double norm = std::sqrt(moments.squares);
  const float factor =
      norm > dgc_->clip_norm() ? static_cast<float>(dgc_->clip_norm() / norm) : 1.0F;

  const bool fresh = sums_.empty();
  const float momentum = velocities_.empty() ? 0 : momentum_;
  const auto velocity = [&](size_t i) {
    const float added = gradient[i] * factor;
    return momentum == 0 ? added : momentum * velocities_[i] + added;
  };
  int32_t largest = 0;
  for (size_t i = 0; i < (fresh ? 0 : elements_); ++i) {
    largest = std::max(largest, MagnitudeBits(sums_[i] + velocity(i)));
  }
  if (largest >= kNotFinite) return kNoScaler;

  sums_.resize(elements_);
  const bool keeps = momentum_ != 0;
  if (keeps) velocities_.resize(elements_);
  for (size_t i = 0; i < elements_; ++i) {
    const float moved = velocity(i);
    sums_[i] += moved;
    if (keeps) velocities_[i] = moved;
  }
  if (!keeps) velocities_.clear();

  // What float64 makes of a whole number, such as 0.07 * 100, may be a little more than that.
  const double exact = dgc_->Ratio(round) * static_cast<double>(elements_);
  const double share = std::ceil(exact * (1 - 1e-12));
  const size_t count = std::max<size_t>(1, static_cast<size_t>(share));
  selected_ = SelectLargest(sums_.data(), elements_, std::min(count, elements_));
  selected_.ForEach([&](size_t element) {
    selected_sums_.push_back(sums_[element]);
    if (keeps) selected_velocities_.push_back(velocities_[element]);
  });
  return 0;
}

void DgcEncoder::Discard() {
  if (!selected_sums_.empty()) {
    size_t i = 0;
    selected_.ForEach([&](size_t element) {
      sums_[element] = selected_sums_[i];
      if (!selected_velocities_.empty()) velocities_[element] = selected_velocities_[i];
      ++i;
    });
  }
  if (!all_sums_.empty()) sums_ = all_sums_;
  ForgetLast();
}

void DgcEncoder::ForgetLast() {
  selected_sums_.clear();
  selected_velocities_.clear();
  all_sums_.clear();
}

void DgcEncoder::TakeAll(size_t offset, size_t length, float* values) {
  if (all_sums_.empty()) all_sums_ = sums_;
  const auto first = sums_.begin() + static_cast<std::ptrdiff_t>(offset);
  std::copy_n(first, length, values);
  std::fill_n(first, length, 0.0F);
}

Buffer DgcEncoder::Encode(size_t offset, size_t length, float, const Draws&) {
  Buffer bytes = dgc_->EncodeSelected(sums_.data(), length, selected_, offset);
  const bool masks = dgc_->masks() && !velocities_.empty();
  selected_.ForEachIn(offset, offset + length, [&](size_t element) {
    sums_[element] = 0;
    if (masks) velocities_[element] = 0;
  });
  return bytes;
}

std::vector<float> DgcEncoder::state() const {
  std::vector<float> state = sums_;
  state.insert(state.end(), velocities_.begin(), velocities_.end());
  state.resize(2 * sums_.size());
  return state;
}

void DgcEncoder::SetState(std::vector<float> state) {
  if (!state.empty() && state.size() != 2 * elements_) {
    throw std::invalid_argument("a state of " + std::to_string(state.size()) +
                                " numbers; this key's has " + std::to_string(2 * elements_));
  }
  ForgetLast();
  const auto middle = state.begin() + static_cast<std::ptrdiff_t>(state.size() / 2);
  velocities_.assign(middle, state.end());
  state.erase(middle, state.end());
  sums_ = std::move(state);
}

}  // namespace kvstore_ext
