#include "keys/key_codec.h"

#include <cstring>

#include "keys/payload_sizes.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

// To wake another thread would take longer than to encode so many elements.
constexpr uint64_t kSmallElements = 8192;

}  // namespace

bool KeyCodec::encodes_in_turn() const { return lane().declaration().elements > kSmallElements; }

void KeyCodec::CheckMessage(const Message&) const {
  throw Unfit("its method knows no such message");
}

void KeyCodec::RefuseInput(uint64_t round) const {
  throw NotFinite("the gradient of key " + lane().declaration().name + ", round " +
                  std::to_string(round) + ", has values that are not finite");
}

void KeyCodec::WritePlain(const Slice& slice, const Result& result, char* output) const {
  CheckPlain(slice, result);
  const size_t element = SizeOf(lane().declaration().dtype);
  const size_t bytes = slice.length * element;
  if (bytes == 0) return;  // an array without elements may lie nowhere
  char* to = output + slice.offset * element;
  if (result.payload.size == 0) {
    std::memset(to, 0, bytes);
  } else {
    std::memcpy(to, result.payload.data.get(), bytes);
  }
}

void KeyCodec::CheckPlain(const Slice& slice, const Result& result) const {
  const SliceDeclaration& key = lane().declaration();
  const size_t bytes = PlainBytes(key.dtype, slice.length);
  if (result.encoding == Encoding::kSkipped && result.payload.size == 0) return;
  if (result.encoding != Encoding::kEncoded && result.payload.size == bytes) return;
  throw std::runtime_error("key " + key.name + ": a server sent " +
                           std::to_string(result.payload.size) + " bytes for a slice of " +
                           std::to_string(bytes));
}

// Of nothing there is nothing, however it is encoded; and the root of a broadcast has what it would
// be sent.
Result KeyCodec::Keep(const Slice& slice, const Result& result) const {
  const bool may_be_empty = slice.length == 0 || lane().declaration().method == kBroadcast;
  if (!may_be_empty || result.payload.size > 0) CheckPlain(slice, result);
  return result;
}

}  // namespace kvstore_ext
