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

// Reads the message that begins there; returns how many bytes it takes, or 0 where none begins.
size_t ReadOne(const Message& batch, size_t begin, Message* message) {
  const Buffer& bytes = batch.payload;
  const size_t left = bytes.size - begin;
  if (left < sizeof(Entry)) return 0;
  Entry entry;
  std::memcpy(&entry, bytes.data.get() + begin, sizeof entry);
  const size_t text = entry.text;
  const size_t payload = entry.payload;
  const size_t place = entry.places != 0 ? sizeof(Place) : 0;
  const size_t all = sizeof entry + Padded(text) + place + Padded(payload);
  if (left < all || payload != (place > 0 ? 0 : entry.header.whole) ||
      entry.header.type == MessageType::kBatch) {
    return 0;
  }
  size_t offset = begin + sizeof entry;
  message->peer = batch.peer;
  message->job = batch.job;
  message->priority = entry.priority;
  message->header = entry.header;
  message->text.assign(bytes.data.get() + offset, text);
  offset += Padded(text);
  if (place > 0) {
    message->place.emplace();
    std::memcpy(&*message->place, bytes.data.get() + offset, place);
    if (message->place->bytes != entry.header.whole) return 0;
    offset += place;
  }
  if (payload > 0) message->payload = bytes.Range(offset, payload);
  message->payload_is_ours = place == 0 && batch.payload_is_ours;
  return all;
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

Batch::Contents Batch::Read(const Message& batch) {
  Contents contents;
  size_t offset = 0;
  while (offset < batch.payload.size) {
    Message message;
    const size_t bytes = ReadOne(batch, offset, &message);
    if (bytes == 0) break;
    contents.messages.push_back(std::move(message));
    offset += bytes;
  }
  contents.unread = batch.payload.size - offset;
  return contents;
}

void Batch::Refuse(const Message& batch, size_t unread) {
  const std::string why = "peer " + std::to_string(batch.peer) + " sent a batch of " +
                          std::to_string(batch.payload.size) +
                          " bytes with no whole message at byte " +
                          std::to_string(batch.payload.size - unread);
  throw UnfitPart(why, batch);
}

}  // namespace kvstore_ext
