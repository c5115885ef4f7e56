// How a slice's gradient is made small for its way to the server.
#pragma once

#include <memory>
#include <string>

#include "buffer.h"
#include "dtype.h"

namespace kvstore_ext {

// One slice's codec. A worker's encodes, round after round, and may carry over to the next round
// what a round could not send; the server's only decodes. Worker and server do not know which one
// they run. Not thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // The gradient, of the slice's elements, as it travels.
  virtual Buffer Encode(const char* gradient) = 0;

  // What Encode has made, as numbers of the key's type. Precondition: bytes.size == EncodedBytes().
  virtual Buffer Decode(const Buffer& bytes) = 0;

  virtual size_t EncodedBytes() const = 0;
};

// A codec for a slice of a key; nothing where `compression` is empty. Otherwise it is a name and
// numbers: "2bit 0.5". Throws std::invalid_argument for an unknown name or another type than
// float32.
std::unique_ptr<Codec> MakeCodec(const std::string& compression, DType dtype, size_t elements);

}  // namespace kvstore_ext
