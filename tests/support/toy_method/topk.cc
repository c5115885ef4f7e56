#include "codecs/topk.h"

#include <cmath>
#include <vector>

#include "codecs/key_encoder.h"
#include "codecs/select_largest.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "topk";
constexpr size_t kElementBytes = sizeof(uint32_t) + sizeof(float);

// Selects among all of a key's elements, whichever slices they are in.
class TopKEncoder : public KeyEncoder {
 public:
  TopKEncoder(std::shared_ptr<const Codec> codec, size_t elements, size_t count)
      : KeyEncoder(std::move(codec), elements), count_(count) {}

  float Prepare(const float* gradient, uint64_t round) override {
    kept_.assign(elements_, 0);
    const Subset largest = SelectLargest(gradient, elements_, count_);
    largest.ForEach([&](size_t i) { kept_[i] = gradient[i]; });
    return KeyEncoder::Prepare(gradient, round);
  }

  Buffer Encode(size_t offset, size_t length, float scaler, const Draws& draws) override {
    return codec_->Encode(kept_.data() + offset, length, scaler, draws);
  }

 private:
  const size_t count_;
  std::vector<float> kept_;  // of the round's gradient; the other elements are 0
};

std::shared_ptr<const Codec> Make(const MethodValues& values, int) {
  return std::make_shared<TopK>(values.Number("ratio"));
}

}  // namespace

CodecMethod TopK::Method() { return {kName, {MethodOption::NumberAbove("ratio", 0, 1)}, Make}; }

std::unique_ptr<KeyEncoder> TopK::MakeEncoder(size_t elements) const {
  const auto count = static_cast<size_t>(std::ceil(ratio_ * static_cast<double>(elements)));
  return std::make_unique<TopKEncoder>(shared_from_this(), elements, count);
}

double TopK::bytes_per_element() const { return kElementBytes * ratio_; }

Buffer TopK::Encode(const float* values, size_t elements, float, const Draws&) const {
  std::vector<uint32_t> sent;
  for (uint32_t i = 0; i < elements; ++i) {
    if (values[i] != 0) sent.push_back(i);
  }
  Buffer bytes = Buffer::Allocate(kElementBytes * sent.size());
  char* to = bytes.data.get();
  for (const uint32_t element : sent) {
    Store(to, element);
    Store(to + sizeof element, values[element]);
    to += kElementBytes;
  }
  return bytes;
}

void TopK::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  const size_t count = bytes.size / kElementBytes;
  CheckSize(kName, bytes, elements, kElementBytes * count);
  const char* from = bytes.data.get();
  for (size_t i = 0; i < count; ++i, from += kElementBytes) {
    const auto element = Load<uint32_t>(from);
    if (element >= elements) {
      RefuseBytes(kName, "index " + std::to_string(element) + ", out of range,");
    }
    sum[element] += Load<float>(from + sizeof element);
  }
}

Buffer TopK::EncodeSum(const float* sum, size_t elements, float scaler, const Draws& draws) const {
  Buffer bytes = Encode(sum, elements, scaler, draws);
  return bytes.size < sizeof(float) * elements ? bytes : Buffer();
}

}  // namespace kvstore_ext
