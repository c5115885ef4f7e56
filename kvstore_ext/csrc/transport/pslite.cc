#include "transport/pslite.h"

#include <malloc.h>

#include <limits>
#include <utility>

#include "transport/body.h"
#include "transport/libmxnet.h"
#include "transport/placing.h"

namespace kvstore_ext {
namespace {

// ZMQ allocates every message that it receives. By default glibc takes slices of our size from the
// kernel and gives them back, page by page, which costs more than copying them does: measured on
// two cores, a third of the processor time of a round. Kept in the heap they are used again.
void KeepMessageMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc allows
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

}  // namespace

void UseOneHeap() { mallopt(M_ARENA_MAX, 1); }

PsLiteTransport::PsLiteTransport(Role role, int peers, bool copies)
    : role_(role), copies_(copies), peers_(peers + 1) {}

void PsLiteTransport::Start(MessageHandler handler) {
  handler_ = std::move(handler);
  KeepMessageMemory();
  customer_ = std::make_unique<char[]>(kCustomerBytes);
  // One number as both app and customer: ps-lite finds a worker's customer by one, a server's by
  // the other.
  LibMXNet::Get().customer_create(customer_.get(), kAppId, kAppId,
                                  [this](const ps::Message& message) { Receive(message); });
  running_ = true;
}

// Where ps-lite resends (PS_RESEND) it knows duplicates by their timestamp, so no two messages to a
// peer may share one. A message with the value that means "none" would never be acknowledged.
int PsLiteTransport::Timestamp(int peer) {
  int timestamp;
  do {
    timestamp = peers_[peer + 1].timestamp++ & std::numeric_limits<int>::max();
  } while (timestamp == ps::kEmpty);
  return timestamp;
}

void PsLiteTransport::Send(const Message& message) {
  ps::Message out;
  out.meta.head = static_cast<int>(message.job);  // of no use to customers of ours
  out.meta.app_id = kAppId;
  out.meta.customer_id = kAppId;
  out.meta.timestamp = Timestamp(message.peer);
  out.meta.recver = PeerId(role_, message.peer);
  // Customers count answers to requests in a list that only grows; they leave requests alone.
  out.meta.request = true;
  out.meta.push = true;
  out.meta.priority = message.priority;
  const std::optional<Place> place =
      message.place ? message.place : PlacePayload(message, MemoryOf(message.peer));
  out.meta.pull = place.has_value();  // which says that the body has it
  out.meta.body = BodyOf(message, place);
  if (!place && message.payload.data != nullptr) {
    Buffer payload = message.payload;
    if (copies_ && message.payload_is_borrowed) payload = payload.Copy();
    out.meta.data_type = {1};  // bytes
    out.meta.data_size = static_cast<int>(payload.size);
    out.data.push_back(std::move(payload));
  }
  // The only member of Postoffice that is safe to read: the first one, a pointer to the Van.
  void* van = *static_cast<void**>(LibMXNet::Get().postoffice());
  LibMXNet::Get().van_send(van, out);
}

void PsLiteTransport::Receive(const ps::Message& received) const {
  const ps::Meta& meta = received.meta;
  const int peer = PeerOf(role_, static_cast<int>(peers_.size()) - 1, meta.sender);
  std::optional<Message> message = ReadBody(meta.body, meta.pull);
  if (!message) return Handle(NewsOf(meta.body, peer), meta);
  message->peer = peer;
  if (message->place) Fetch(&*message);
  if (!received.data.empty()) {
    // ZeroMQ leaves a message of less than 8 KiB that is not encrypted where it was read from the
    // socket: at any address.
    message->payload = received.data.front().Aligned();
    message->payload_is_ours = true;
  }
  Handle(std::move(*message), meta);
}

void PsLiteTransport::Handle(Message message, const ps::Meta& meta) const {
  message.priority = meta.priority;
  message.job = static_cast<uint32_t>(meta.head);
  handler_(std::move(message));
}

void PsLiteTransport::Share(int peer, std::shared_ptr<SharedMemory> memory) {
  peers_[peer + 1].shared = std::move(memory);
  peers_[peer + 1].memory = peers_[peer + 1].shared.get();
}

SharedMemory* PsLiteTransport::MemoryOf(int peer) const {
  return peer < 0 ? nullptr : peers_[peer + 1].memory.load();
}

bool PsLiteTransport::Put(Message* message) { return PutPayload(message, MemoryOf(message->peer)); }

void PsLiteTransport::Fetch(Message* message) const {
  FetchPayload(message, MemoryOf(message->peer));
}

void PsLiteTransport::Stop() {
  if (!running_) return;
  running_ = false;
  LibMXNet::Get().customer_destroy(customer_.get());
}

}  // namespace kvstore_ext
