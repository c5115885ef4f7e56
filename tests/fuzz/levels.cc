// Sums of ternary digits, for any number of workers: what can be read is written alike.
#include "codecs/levels.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "input.h"

namespace kvstore_ext {
namespace {

constexpr size_t kMostElements = 3000;
constexpr int kMostWorkers = 1 << 20;

void Run(Input input) {
  const int few = 1 + static_cast<int>(input.Take<uint8_t>());
  const int many = 1 + static_cast<int>(input.Take<uint32_t>() % kMostWorkers);
  const Levels levels(few <= 128 ? few : many);
  const size_t elements = input.Take<uint16_t>() % kMostElements;
  std::string bytes = input.Text(levels.EncodedBytes(elements));
  bytes.resize(levels.EncodedBytes(elements));
  const Buffer received = Received(bytes);
  std::vector<float> values(elements);
  try {
    levels.Decode(received.data.get(), elements, 1, values.data());
  } catch (const std::invalid_argument&) {
    return;
  }
  const Buffer again = Received(std::string(bytes.size(), '\0'));
  levels.Encode(values.data(), elements, 1, again.data.get());
  if (std::memcmp(again.data.get(), bytes.data(), bytes.size()) != 0) std::abort();
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
