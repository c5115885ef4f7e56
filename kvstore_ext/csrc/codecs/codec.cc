#include "codecs/codec.h"

#include <algorithm>
#include <limits>

#include "codecs/codec_list.h"
#include "codecs/finite.h"
#include "codecs/key_encoder.h"

namespace kvstore_ext {

float Codec::Scaler(const float* values, size_t elements) const {
  const bool finite = AllFinite(DType::kFloat32, reinterpret_cast<const char*>(values), elements);
  return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
}

Buffer Codec::EncodeClipped(const float* values, size_t elements, float, float scaler,
                            const Draws& draws) const {
  return Encode(values, elements, scaler, draws);
}

void Codec::Check(size_t elements, const Buffer& bytes) const {
  std::vector<float> sum(elements);
  AddTo(sum.data(), elements, bytes);
}

float Codec::ScalerOf(const Buffer&) const { return 0; }

Buffer Codec::EncodeSum(const float*, size_t, float, const Draws&) const { return Buffer(); }

void Codec::DecodeSum(float* out, size_t elements, const Buffer& bytes) const {
  std::fill_n(out, elements, 0.0F);
  AddTo(out, elements, bytes);
}

std::unique_ptr<KeyEncoder> Codec::MakeEncoder(size_t elements) const {
  return std::make_unique<KeyEncoder>(shared_from_this(), elements);
}

std::shared_ptr<const Codec> MakeCodec(const std::string& specification, int workers) {
  const CodecMethod& method = CodecMethodOf(MethodNameIn(specification));
  return method.make(MethodValues(specification, method.options), workers);
}

}  // namespace kvstore_ext
