// What a worker tells a trace beside its slices (worker.h).
#include "keys/payload_sizes.h"
#include "support/clock.h"
#include "worker/worker_key.h"

namespace kvstore_ext {

std::vector<std::pair<uint64_t, SliceDeclaration>> Worker::Declared() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::pair<uint64_t, SliceDeclaration>> declared;
  for (const auto& key : keys_) declared.emplace_back(key.first, key.second->declared);
  return declared;
}

// Of the key's last round, and what its operation is; under the key's lock.
Event Worker::EventOfKey(EventKind kind, const Key& key) {
  Event event;
  event.kind = kind;
  event.key = key.id;
  event.round = static_cast<uint32_t>(key.last_round());
  event.priority = key.priority;
  const bool gradient = key.operation.kind == Operation::Kind::kPush && !key.IsLast(0);
  event.message = static_cast<uint8_t>(!key.operation.opens_round() ? MessageType::kPull
                                       : gradient                   ? MessageType::kPush
                                                                    : MessageType::kInit);
  return event;
}

void Worker::RecordReady(const Key& key) {
  if (!recorder_.on()) return;
  Event event = EventOfKey(EventKind::kReady, key);
  event.begin = InNanoseconds(key.operation.pushed);
  event.end = InNanoseconds(key.since);
  event.bytes = static_cast<uint32_t>(PlainBytes(key.declared.dtype, key.declared.elements));
  recorder_.Record(event);
}

// Under the key's lock.
void Worker::RecordWritten(const Key& key, const Slice& slice, int64_t begun, size_t bytes) {
  if (!recorder_.on() || key.operation.output == nullptr) return;
  Event event = EventOfKey(EventKind::kWritten, key);
  event.begin = begun;
  event.slice = static_cast<int32_t>(slice.index);
  event.peer = static_cast<int16_t>(slice.server);
  event.bytes = static_cast<uint32_t>(bytes);
  recorder_.Record(event);
}

// A link is measured where it is idle, as it mostly is when a step begins.
void Worker::MeasureClocks() {
  if (!recorder_.on()) return;
  for (int server : Greeted()) links_[server]->Measure();
}

}  // namespace kvstore_ext
