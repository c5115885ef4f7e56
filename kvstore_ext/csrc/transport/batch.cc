#include "transport/batch.h"

#include <cstring>
#include <string>
#include <utility>

#include "transport/gate.h"

namespace kvstore_ext {
namespace {

// Before each message, which follows: header, text, payload.
struct Entry {
  int32_t priority = 0;
  uint32_t text = 0;     // bytes
  uint32_t payload = 0;  // bytes
  uint32_t places = 0;   // 1 where a place follows in place of the payload
  Header header;
};
static_assert(sizeof(Entry) == 64, "an entry crosses the wire as it lies in memory");

// Numbers in payloads are read where they lie.
size_t Padded(size_t bytes) { return (bytes + 7) / 8 * 8; }
static_assert(sizeof(Entry) + Batch::kMostSmall + 2 * 8 <= Batch::kMostBytes, "room for any one");

[[noreturn]] void Refuse(const Message& batch, size_t offset) {
  throw Unfit("peer " + std::to_string(batch.peer) + " sent a batch of " +
              std::to_string(batch.payload.size) + " bytes with no whole message at byte " +
              std::to_string(offset));
}

}  // namespace

bool Batch::IsSmall(const Message& message) {
  const size_t bytes = message.place ? message.place->bytes : message.payload.size;
  return message.payload.size + message.text.size() <= kMostSmall && bytes == message.header.whole;
}

size_t Batch::SizeOf(const Message& message) {
  const size_t place = message.place ? sizeof(Place) : 0;
  return sizeof(Entry) + Padded(message.text.size()) + place + Padded(message.payload.size);
}

void Batch::Add(Message message) {
  bytes_ += SizeOf(message);
  message_bytes_ += BytesOf(message);
  messages_.push_back(std::move(message));
}

Message Batch::Take() {
  std::vector<Message> messages = std::move(messages_);
  const size_t bytes = std::exchange(bytes_, 0);
  messages_.clear();
  message_bytes_ = 0;
  if (messages.size() == 1) return std::move(messages.front());
  Message batch = ControlMessage(MessageType::kBatch);
  batch.peer = messages.front().peer;
  batch.priority = messages.front().priority;
  batch.payload = Buffer::Allocate(bytes);
  batch.header.whole = static_cast<uint32_t>(bytes);
  char* end = batch.payload.data.get();
  std::memset(end, 0, bytes);
  for (const Message& message : messages) {
    Entry entry;
    entry.priority = message.priority;
    entry.text = static_cast<uint32_t>(message.text.size());
    entry.payload = static_cast<uint32_t>(message.payload.size);
    entry.places = message.place ? 1 : 0;
    entry.header = message.header;
    std::memcpy(end, &entry, sizeof entry);
    end += sizeof entry;
    std::memcpy(end, message.text.data(), message.text.size());
    end += Padded(message.text.size());
    if (message.place) {
      std::memcpy(end, &*message.place, sizeof(Place));
      end += sizeof(Place);
    }
    if (message.payload.size > 0) {
      std::memcpy(end, message.payload.data.get(), message.payload.size);
    }
    end += Padded(message.payload.size);
  }
  return batch;
}

std::vector<Message> Batch::Split(const Message& batch) {
  std::vector<Message> messages;
  const Buffer& bytes = batch.payload;
  for (size_t offset = 0; offset < bytes.size;) {
    const size_t begin = offset;
    const size_t left = bytes.size - offset;
    if (left < sizeof(Entry)) Refuse(batch, begin);
    Entry entry;
    std::memcpy(&entry, bytes.data.get() + offset, sizeof entry);
    const size_t text = entry.text;
    const size_t payload = entry.payload;
    const size_t place = entry.places != 0 ? sizeof(Place) : 0;
    if (left < sizeof entry + Padded(text) + place + Padded(payload) ||
        payload != (place > 0 ? 0 : entry.header.whole) ||
        entry.header.type == MessageType::kBatch) {
      Refuse(batch, begin);
    }
    offset += sizeof entry;
    Message message;
    message.peer = batch.peer;
    message.job = batch.job;
    message.priority = entry.priority;
    message.header = entry.header;
    message.text.assign(bytes.data.get() + offset, text);
    offset += Padded(text);
    if (place > 0) {
      message.place.emplace();
      std::memcpy(&*message.place, bytes.data.get() + offset, place);
      if (message.place->bytes != entry.header.whole) Refuse(batch, begin);
      offset += place;
    }
    if (payload > 0) message.payload = bytes.Range(offset, payload);
    message.payload_is_ours = place == 0 && batch.payload_is_ours;
    offset += Padded(payload);
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace kvstore_ext
