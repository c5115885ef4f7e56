#include "two_bit.h"

#include <algorithm>

namespace kvstore_ext {

Buffer TwoBit::Encode(const char* gradient) {
  const auto* values = reinterpret_cast<const float*>(gradient);
  residual_.resize(elements_);
  Buffer encoded = Buffer::Allocate(EncodedBytes());
  for (size_t byte = 0; byte < encoded.size; ++byte) {
    const size_t end = std::min(elements_, byte * 4 + 4);
    unsigned codes = 0;
    for (size_t i = byte * 4; i < end; ++i) {
      float rest = residual_[i] + values[i];
      unsigned code = 0;
      if (rest >= threshold_) {
        code = 1;
        rest -= threshold_;
      } else if (rest <= -threshold_) {
        code = 2;
        rest += threshold_;
      }
      residual_[i] = rest;
      codes |= code << (i % 4 * 2);
    }
    encoded.data.get()[byte] = static_cast<char>(codes);
  }
  return encoded;
}

Buffer TwoBit::Decode(const Buffer& bytes) {
  const float values[4] = {0.0F, threshold_, -threshold_, 0.0F};
  Buffer decoded = Buffer::Allocate(elements_ * sizeof(float));
  auto* out = reinterpret_cast<float*>(decoded.data.get());
  for (size_t i = 0; i < elements_; ++i) {
    const auto codes = static_cast<unsigned char>(bytes.data.get()[i / 4]);
    out[i] = values[codes >> (i % 4 * 2) & 3];
  }
  return decoded;
}

}  // namespace kvstore_ext
