// Numbers that travel as they are: sums of gradients, or one worker's array for all.
#pragma once

#include <string>

#include "keys/key_codec.h"

namespace kvstore_ext {

class PlainCodec : public KeyCodec {
 public:
  // "broadcast" for keys whose rounds bring one worker's array to all others.
  explicit PlainCodec(std::string specification = {}) : specification_(std::move(specification)) {}

  std::string specification() const override { return specification_; }
  double bytes_per_element(DType dtype) const override {
    return static_cast<double>(SizeOf(dtype));
  }
  bool encodes_in_turn() const override { return false; }

  std::optional<Encoding> Prepare(const char* input, uint64_t, bool) override {
    input_ = input;
    return Encoding::kPlain;
  }

  // Without a copy.
  Buffer Encode(const Slice& slice, uint64_t, Encoding) override {
    const size_t element = SizeOf(lane().declaration().dtype);
    return Buffer::Borrow(const_cast<char*>(input_) + slice.offset * element,
                          slice.length * element);
  }

  bool Receive(const Slice& slice, uint64_t, const Result& result, char* output) override {
    if (output != nullptr) WritePlain(slice, result, output);
    return true;
  }

 private:
  const std::string specification_;
  const char* input_ = nullptr;  // the round's; Prepare's thread encodes as well
};

}  // namespace kvstore_ext
