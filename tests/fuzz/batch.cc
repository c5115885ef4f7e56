// What comes as a batch is split into messages, each of which lies within it.
#include "transport/batch.h"

#include <cstdlib>

#include "input.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

size_t sum_of_bytes;  // so that each is read

void Look(const Message& message, const Message& batch) {
  for (const char byte : message.text) sum_of_bytes += static_cast<unsigned char>(byte);
  for (size_t i = 0; i < message.payload.size; ++i) {
    sum_of_bytes += static_cast<unsigned char>(message.payload.data.get()[i]);
  }
  const bool fits = message.payload.size == (message.place ? 0 : message.header.whole) &&
                    message.header.type != MessageType::kBatch &&
                    BytesOf(message) <= batch.payload.size;
  if (!fits) std::abort();
}

void Run(const std::string& bytes) {
  Message batch = ControlMessage(MessageType::kBatch);
  batch.payload = Received(bytes);
  batch.header.whole = static_cast<uint32_t>(bytes.size());
  const Batch::Contents contents = Batch::Read(batch);
  for (const Message& message : contents.messages) Look(message, batch);
  if (contents.unread > bytes.size()) std::abort();
  try {
    Batch::Refuse(batch, contents.unread);
  } catch (const Unfit&) {
  }
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size).Rest());
  return 0;
}
