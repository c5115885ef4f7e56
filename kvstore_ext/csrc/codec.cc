#include "codec.h"

#include <sstream>
#include <stdexcept>

#include "two_bit.h"

namespace kvstore_ext {

std::unique_ptr<Codec> MakeCodec(const std::string& compression, DType dtype, size_t elements) {
  if (compression.empty()) return nullptr;
  std::istringstream words(compression);
  std::string name;
  words >> name;
  if (dtype != DType::kFloat32) {
    throw std::invalid_argument(name + " compresses float32; got " + NameOf(dtype));
  }
  if (name == "2bit") {
    float threshold = 0;
    words >> threshold;
    return std::make_unique<TwoBit>(threshold, elements);
  }
  throw std::invalid_argument("there is no compression '" + compression + "'; there is 2bit");
}

}  // namespace kvstore_ext
