// Numbers that travel as they are: sums of gradients, or one worker's array for all.
#pragma once

#include <string>
#include <utility>

#include "codecs/finite.h"
#include "keys/key_codec.h"

namespace kvstore_ext {

// What becomes of a gradient that is not finite: it travels like any other one, or has the round
// not count, or ends the job.
enum class NonFinite { kKeep, kSkip, kRaise };

class PlainCodec : public KeyCodec {
 public:
  // The specification is kBroadcast for keys whose rounds bring one worker's array to all others.
  explicit PlainCodec(std::string specification = {}, NonFinite non_finite = NonFinite::kKeep)
      : specification_(non_finite == NonFinite::kSkip ? kSkipping : std::move(specification)),
        non_finite_(non_finite) {}

  std::string specification() const override { return specification_; }
  double bytes_per_element(DType dtype) const override {
    return static_cast<double>(SizeOf(dtype));
  }
  bool encodes_in_turn() const override { return false; }

  std::optional<Encoding> Prepare(const char* input, uint64_t round, bool) override {
    input_ = input;
    const SliceDeclaration& key = lane().declaration();
    if (non_finite_ == NonFinite::kKeep || AllFinite(key.dtype, input, key.elements)) {
      return Encoding::kPlain;
    }
    if (non_finite_ == NonFinite::kRaise) RefuseInput(round);
    return Encoding::kSkipped;
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
  const NonFinite non_finite_;
  const char* input_ = nullptr;  // the round's; Prepare's thread encodes as well
};

}  // namespace kvstore_ext
