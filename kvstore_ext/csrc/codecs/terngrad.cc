#include "codecs/terngrad.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codecs/kernels/kernels.h"
#include "support/float16.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "terngrad";
constexpr size_t kHeader = sizeof(float);
constexpr uint8_t kLargestByte = 242;  // five times the digit 2

size_t EncodedBytes(size_t elements) {
  constexpr size_t kBlock = kTernaryLanes * kTernaryRows;
  return kHeader + elements / kBlock * kTernaryLanes + DivideUp(elements % kBlock, kTernaryRows);
}

// Below this share of the mean square, a variance is what rounding has left of zero.
constexpr double kRounding = 1e-12;

// Population standard deviation.
double Deviation(const Moments& moments, size_t elements) {
  const double mean = moments.sum / elements;
  const double square = moments.squares / elements;
  const double variance = square - mean * mean;
  return variance <= kRounding * square ? 0 : std::sqrt(variance);
}

// Throws for what no worker can have sent.
float CheckedScaler(const Buffer& bytes) {
  const auto scaler = Load<float>(bytes.data.get());
  if (!IsMagnitude(scaler)) RefuseBytes(kName, "a scaler of " + std::to_string(scaler));
  return scaler;
}

const uint8_t* DigitsOf(const Buffer& bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data.get() + kHeader);
}

std::shared_ptr<const Codec> Make(const MethodValues& values, int workers) {
  TernGradOptions options;
  options.clip_sigma = values.Number("clip_sigma");
  options.sharing = values.Flag("scaler_sharing");
  options.seed = values.Whole("seed");
  return std::make_shared<TernGrad>(options, workers);
}

}  // namespace

CodecMethod TernGrad::Method() {
  return {kName,
          {MethodOption::Number("clip_sigma", 0), MethodOption::Flag("scaler_sharing"),
           MethodOption::Seed()},
          Make};
}

TernGrad::TernGrad(const TernGradOptions& options, int workers)
    : options_(options),
      levels_(options.sharing ? std::optional<Levels>(Levels(workers)) : std::nullopt) {}

float TernGrad::Scaler(const float* values, size_t elements) const {
  const Moments moments = kernels().moments(values, elements);
  if (!moments.finite()) return std::numeric_limits<float>::quiet_NaN();
  const auto largest = static_cast<float>(std::sqrt(moments.largest_square));
  if (elements == 0 || options_.clip_sigma <= 0) return largest;
  const auto limit = static_cast<float>(options_.clip_sigma * Deviation(moments, elements));
  return limit > 0 ? std::min(largest, limit) : largest;
}

Buffer TernGrad::Encode(const float* values, size_t elements, float scaler,
                        const Draws& draws) const {
  return EncodeClipped(values, elements, scaler, scaler, draws);
}

Buffer TernGrad::EncodeClipped(const float* values, size_t elements, float limit, float scaler,
                               const Draws& draws) const {
  Buffer bytes = Buffer::Allocate(EncodedBytes(elements));
  Store(bytes.data.get(), scaler);
  auto* digits = reinterpret_cast<uint8_t*>(bytes.data.get() + kHeader);
  if (scaler > 0) {
    kernels().encode_ternary(values, elements, std::min(limit, scaler), scaler, draws, digits);
  } else {
    kernels().encode_ternary(values, elements, 0, 1, draws, digits);
  }
  return bytes;
}

void TernGrad::Check(size_t elements, const Buffer& bytes) const {
  CheckSize(kName, bytes, elements, EncodedBytes(elements));
  CheckedScaler(bytes);
  const uint8_t largest = kernels().largest_byte(DigitsOf(bytes), bytes.size - kHeader);
  if (largest > kLargestByte) RefuseBytes(kName, "a byte of " + std::to_string(largest));
}

void TernGrad::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  Check(elements, bytes);
  kernels().add_ternary(sum, elements, CheckedScaler(bytes), DigitsOf(bytes));
}

float TernGrad::ScalerOf(const Buffer& bytes) const {
  if (bytes.size < kHeader) RefuseBytes(kName, std::to_string(bytes.size) + " bytes");
  return CheckedScaler(bytes);
}

Buffer TernGrad::EncodeSum(const float* sum, size_t elements, float scaler, const Draws&) const {
  if (!levels_) return Buffer();
  Buffer bytes = Buffer::Allocate(kHeader + levels_->EncodedBytes(elements));
  Store(bytes.data.get(), scaler);
  levels_->Encode(sum, elements, scaler, bytes.data.get() + kHeader);
  return bytes;
}

void TernGrad::DecodeSum(float* out, size_t elements, const Buffer& bytes) const {
  if (!levels_) RefuseBytes(kName, "a sum without a shared scaler");
  CheckSize(kName, bytes, elements, kHeader + levels_->EncodedBytes(elements));
  levels_->Decode(bytes.data.get() + kHeader, elements, CheckedScaler(bytes), out);
}

double TernGrad::bytes_per_element() const {
  constexpr double kOnTheWayThere = 1.0 / kTernaryRows;
  return levels_ ? std::max(kOnTheWayThere, levels_->bytes_per_element()) : sizeof(float);
}

std::unique_ptr<KeyEncoder> TernGrad::MakeEncoder(size_t elements) const {
  return std::make_unique<TernGradEncoder>(
      std::shared_ptr<const TernGrad>(shared_from_this(), this), elements);
}

float TernGradEncoder::Prepare(const float* gradient, uint64_t round) {
  limit_ = KeyEncoder::Prepare(gradient, round);
  return limit_;
}

Buffer TernGradEncoder::EncodeValues(const float* values, size_t elements, float scaler,
                                     const Draws& draws) const {
  return terngrad_->EncodeClipped(values, elements, limit_, scaler, draws);
}

}  // namespace kvstore_ext
