// Every decoder: bytes of the right number, or of any. The loops are those that have a name for
// each instruction set, which clang compiles alike.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "codecs/codec.h"
#include "codecs/kernels/kernels.h"
#include "keys.h"

namespace kvstore_ext {
namespace {

constexpr size_t kMostElements = 3000;
constexpr size_t kChunked[] = {4097, 8200, 65600};  // more than decoders take at a time

const KeyKind& CodecKind(size_t number) {
  static const std::vector<KeyKind> kinds = [] {
    std::vector<KeyKind> all;
    for (const KeyKind& kind : kKinds) {
      if (Declared(kind, 0).has_codec() && !IsSlim(kind)) all.push_back(kind);
    }
    return all;
  }();
  return kinds[number % kinds.size()];
}

// Whether it decodes, which no other exception prevents.
template <typename Function>
bool Decodes(Function decode) {
  try {
    decode();
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

size_t Size(Input* input) {
  const size_t number = input->Take<uint16_t>();
  return number % 64 == 0 ? kChunked[number / 64 % 3] : number % kMostElements;
}

// Of a few numbers among so many.
std::string Encoded(const Codec& codec, size_t elements, bool is_sum, Input* input) {
  std::vector<float> values(elements);
  const size_t count = elements == 0 ? 0 : input->Below(8);
  for (size_t i = 0; i < count; ++i) {
    values[input->Take<uint16_t>() * size_t{7} % elements] = input->Take<int8_t>();
  }
  const float scaler = codec.Scaler(values.data(), elements);
  const Draws draws(0, 0, 0, 1);
  const Buffer right = is_sum ? codec.EncodeSum(values.data(), elements, scaler, draws)
                              : codec.Encode(values.data(), elements, scaler, draws);
  return std::string(right.data.get(), right.size);
}

// As a server does; then the sum goes back to a worker, which can read it.
void RunSum(const Codec& codec, const std::vector<float>& sum, float scaler) {
  if (std::isnan(codec.Codec::Scaler(sum.data(), sum.size()))) return;
  const Buffer bytes = codec.EncodeSum(sum.data(), sum.size(), scaler, Draws(0, 0, 0, 1));
  if (bytes.data == nullptr) return;
  std::vector<float> values(sum.size());
  codec.DecodeSum(values.data(), values.size(), bytes);
}

void Run(Input input) {
  static const std::vector<std::string> available = AvailableKernels();
  const size_t choice = input.Below(256);
  UseKernels(available[choice % available.size()]);
  const KeyKind& kind = CodecKind(choice / available.size());
  const int workers = 1 + static_cast<int>(input.Below(128));
  const auto codec = MakeCodec(kind.method, workers);
  const size_t elements = Size(&input);
  const bool is_sum = input.Below(2) == 0;
  std::string bytes;
  if (input.Below(4) > 0) {
    bytes = Encoded(*codec, elements, is_sum, &input);
    const size_t from = input.Take<uint16_t>() % (bytes.size() + 1);
    input.Copy(bytes.data() + from, bytes.size() - from);
  } else {
    bytes = input.Rest();
  }
  const Buffer received = Received(bytes);
  std::vector<float> sum(elements);
  if (is_sum) {
    Decodes([&] { codec->DecodeSum(sum.data(), elements, received); });
    return;
  }
  // What a server lets in is added later, where it is too late to refuse it.
  const bool passes = Decodes([&] { codec->Check(elements, received); });
  float scaler = 0;
  const bool fits = Decodes([&] {
    codec->AddTo(sum.data(), elements, received);
    scaler = codec->ScalerOf(received);
  });
  if (fits != passes) std::abort();
  if (fits) RunSum(*codec, sum, scaler);
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
