// A worker's operations: a round of a key goes out, and its result comes back (worker.h).
#include <numeric>
#include <stdexcept>

#include "transport/message_event.h"
#include "worker/worker_key.h"

namespace kvstore_ext {

void Worker::Start(Operation operation) {
  Key* key = Find(operation.key);
  std::unique_lock<std::mutex> lock(key->mutex);
  {
    std::lock_guard<std::mutex> all(mutex_);
    ++open_operations_;
  }
  key->busy = true;
  key->operation = std::move(operation);
  key->since = Now();
  try {
    if (!failure_.reason().empty()) return Finish(key, &lock, failure_.reason());
    if (!key->operation.opens_round() && !key->kept.empty()) return TakeKept(key, &lock);
    const std::shared_ptr<Round> round = Open(key, lock);
    RecordReady(*key);
    const bool plain = key->operation.plain;
    const double ready = key->since;
    lock.unlock();
    if (round->is_gradient()) {
      NoteReady(key->id, ready);
      return Prepare(round, plain);
    }
    for (const Slice& slice : key->cut) TrySendSlice(*round, slice);
  } catch (const std::exception& error) {
    // Not to be thrown on: the operation is the key's by now, which ends it, once.
    if (lock.owns_lock()) lock.unlock();
    AbortKey(*key, "cannot be sent", error);
  }
}

void Worker::Miss(uint64_t id) {
  Key* key = Find(id);
  std::lock_guard<std::mutex> lock(key->mutex);
  // The only worker is behind nobody; but a gradient is to take no first value's place.
  if (options_.workers > 1 || key->rounds == 0) key->missed = true;
}

// Under the key's lock.
std::shared_ptr<Worker::Round> Worker::Open(Key* key, const std::unique_lock<std::mutex>&) {
  const Operation& operation = key->operation;
  if (operation.opens_round()) {
    CountRound(key);
  } else if (key->rounds == 0) {
    throw std::runtime_error("it has no first value");
  }
  {
    std::lock_guard<std::mutex> all(mutex_);  // SetOrder's
    if (!key->priority_learned) key->priority = operation.priority;
  }
  if (operation.opens_round() && key->rounds > 1) {
    statistics_.Opened(key->id, key->priority, operation.pushed);
  }
  key->left.assign(key->cut.size(), false);
  key->arrived.assign(key->cut.size(), false);
  key->missing = key->cut.size();
  key->round = RoundOf(key);
  key->admitted = !key->round->is_gradient();
  return key->round;
}

// Throws std::runtime_error where that would leave the worker behind the others.
void Worker::CountRound(Key* key) {
  const Operation& operation = key->operation;
  if (key->missed) {
    throw std::runtime_error(key->rounds == 0
                                 ? "its first value could not be computed"
                                 : "its gradient of the round before could not be computed");
  }
  const bool pushes = operation.kind == Operation::Kind::kPush;
  if (pushes && options_.priorities && key->rounds > 0) {
    learner_.Ready(key->id, key->rounds, operation.pushed, key->since, operation.priority);
  }
  ++key->rounds;
  key->kept.clear();
  // A broadcast is no gradient, and there may be several in a step.
  if (pushes && recorder_.Reach(key->last_round())) MeasureClocks();
}

// What sending a slice has to know, also once the key's operation is another.
std::shared_ptr<Worker::Round> Worker::RoundOf(Key* key) {
  const Operation& operation = key->operation;
  auto round = std::make_shared<Round>();
  round->key = key;
  round->kind = operation.kind;
  round->number = key->last_round();
  round->input = operation.input;
  round->root = operation.root;
  round->step = operation.step;
  round->settings = operation.settings;
  return round;
}

// Not under the key's lock: another window has links send what now fits.
void Worker::NoteReady(uint64_t id, double ready) {
  if (!estimator_ || !options_.priorities) return;
  const std::optional<double> waits = slack_.Ready(id, ready);
  if (!waits) return;
  Traffic traffic;
  for (const auto& link : links_) {
    if (!link->shares_memory()) link->AddTo(&traffic);
  }
  const auto all = [](const auto& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), 0.0);
  };
  estimator_->Iterated(*waits, all(traffic.sent), all(traffic.received));
}

// Looks at the whole gradient, on the engine's thread.
void Worker::Prepare(const std::shared_ptr<Round>& round, bool plain) {
  Key* key = round->key;
  const double begun = Now();
  round->prepared_since = recorder_.Begin();
  std::optional<Encoding> encoding;
  try {
    encoding = key->codec->Prepare(round->input, round->number, plain);
  } catch (const NotFinite& error) {
    return Abort(Named(error.what()));
  } catch (const std::exception& error) {
    return AbortKey(*key, "cannot be compressed", error);
  }
  statistics_.Count([&](Totals* totals) { totals->encode += Now() - begun; });
  if (encoding) AdmitRound(key, round->number, *encoding);
}

void Worker::AdmitRound(Key* key, uint64_t number, Encoding encoding) {
  std::shared_ptr<Round> round;
  {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (!key->busy || key->admitted || !key->IsLast(number)) return;
    key->admitted = true;
    round = key->round;
    round->encoding = encoding;
    if (recorder_.on()) {
      Event event = EventOfKey(EventKind::kPrepared, *key);
      event.begin = round->prepared_since;
      recorder_.Record(event);
    }
  }
  // Slice by slice, so that a large key holds nobody up who is more urgent.
  const bool in_turn = key->codec->encodes_in_turn();
  for (const Slice& slice : key->cut) {
    in_turn ? EncodeInTurn(round, slice) : TrySendSlice(*round, slice);
  }
}

void Worker::EncodeInTurn(const std::shared_ptr<const Round>& round, const Slice& slice) {
  tasks_.Run(round->key->priority, [this, round, &slice] { TrySendSlice(*round, slice); });
}

// Before the last slice has left only a failure can end the operation, and the input stays readable
// after one (operation.h). The last slice's result may end it before this returns.
void Worker::TrySendSlice(const Round& round, const Slice& slice) {
  try {
    SendSlice(round, slice);
  } catch (const std::exception& error) {
    // What was sent cannot be taken back, so nobody can go on.
    AbortKey(*round.key, "cannot be sent", error);
  }
}

void Worker::SendSlice(const Round& round, const Slice& slice) {
  Message message;
  message.priority = round.key->priority;
  message.header.key = round.key->id;
  message.header.slice = slice.index;
  message.header.round = round.number;
  message.header.workers_step = round.step;
  message.header.root = static_cast<uint16_t>(round.root);
  if (round.kind == Operation::Kind::kPull) {
    message.header.type = MessageType::kPull;
    NoteLeft(round, slice);
    links_[slice.server]->Send(std::move(message));
    return;
  }
  if (round.number == 0) {
    SliceDeclaration declaration = round.key->declared;
    declaration.offset = slice.offset;
    declaration.elements = slice.length;
    message.header.type = MessageType::kInit;
    message.text = declaration.Pack();
  } else {
    message.header.type = MessageType::kPush;
    message.header.encoding = round.encoding;
    message.text = round.settings;
  }
  message.peer = slice.server;
  const int64_t begun = recorder_.Begin();
  message.payload = PayloadOf(round, slice);
  if (recorder_.on()) {
    Event event = EventOf(EventKind::kEncoded, message);
    event.begin = begun;
    recorder_.Record(event);
    recorder_.Record(EventOf(EventKind::kQueued, message));
  }
  if (round.number > 0) statistics_.Queued(round.key->id, slice.index);
  const std::shared_ptr<void> owner = NoteLeft(round, slice);
  Buffer& payload = message.payload;
  if (payload.is_borrowed()) {  // the input itself
    payload.data = std::shared_ptr<char>(owner, payload.data.get());
    message.payload_is_borrowed = true;
  }
  links_[slice.server]->Send(std::move(message));
}

// Before it leaves, since the answer may come at once. Until then there is none: an operation must
// not end while its input is being encoded. Returns the input's owner.
std::shared_ptr<void> Worker::NoteLeft(const Round& round, const Slice& slice) {
  Key* key = round.key;
  std::lock_guard<std::mutex> lock(key->mutex);
  if (!key->IsLast(round.number)) return nullptr;
  key->left[slice.index] = true;
  return key->operation.owner;
}

Buffer Worker::PayloadOf(const Round& round, const Slice& slice) {
  const int source = round.kind == Operation::Kind::kBroadcast ? round.root : 0;
  if (!round.is_gradient() && options_.rank != source) return Buffer();
  if (round.encoding == Encoding::kSkipped) return Buffer();
  const size_t element = SizeOf(round.key->declared.dtype);
  const double begun = Now();
  const Buffer payload =
      round.is_gradient() ? round.key->codec->Encode(slice, round.number, round.encoding)
                          : Buffer::Borrow(const_cast<char*>(round.input) + slice.offset * element,
                                           slice.length * element);
  if (round.number > 0) {
    statistics_.Count([&](Totals* totals) {
      totals->encode += Now() - begun;
      totals->plain_bytes += slice.length * element;
      totals->encoded_bytes += payload.size;
    });
  }
  return payload;
}

void Worker::OnResult(const Message& message) {
  const Header& header = message.header;
  Key* key = Find(header.key);
  std::unique_lock<std::mutex> lock(key->mutex);
  if (!Awaits(*key, header)) return;  // which a failure has ended since the gate was asked
  const Slice& slice = key->cut[header.slice];
  const bool is_kept = key->operation.output == nullptr;
  const Result result{is_kept ? Kept(message) : message.payload, header.encoding};
  statistics_.Arrived(header.key, header.slice);
  const bool written = Take(key, slice, result);
  key->arrived[slice.index] = true;
  if (written) Arrived(key, header.encoding, &lock);
}

// Under the key's lock.
bool Worker::Awaits(const Key& key, const Header& header) {
  return key.busy && key.IsLast(header.round) && header.slice < key.left.size() &&
         key.left[header.slice] && !key.arrived[header.slice];
}

// As Receive; throws Unfit for a result that cannot be read, of which nothing stays but what the
// right one overwrites.
bool Worker::Take(Key* key, const Slice& slice, const Result& result) {
  try {
    if (key->operation.output == nullptr) {
      key->kept.resize(key->cut.size());
      key->kept[slice.index] = key->codec->Keep(slice, result);
    }
    return Receive(key, slice, result);
  } catch (const std::exception& error) {
    throw Unfit(error.what());
  }
}

// Under the key's lock; false where a task writes the result later.
bool Worker::Receive(Key* key, const Slice& slice, const Result& result) {
  const double begun = Now();
  const int64_t recorded_since = recorder_.Begin();
  const bool written = key->codec->Receive(slice, key->last_round(), result, key->operation.output);
  statistics_.Count([&](Totals* totals) { totals->decode += Now() - begun; });
  if (written) RecordWritten(*key, slice, recorded_since, result.payload.size);
  return written;
}

// Ends the operation with its last slice.
void Worker::Arrived(Key* key, Encoding encoding, std::unique_lock<std::mutex>* lock) {
  if (--key->missing > 0) return;
  if (key->operation.opens_round()) {  // a result may be pulled again
    key->skipped = encoding == Encoding::kSkipped;
    if (key->skipped) {
      key->codec->Discard();
      statistics_.Count([](Totals* totals) { ++totals->non_finite; });
    }
  }
  Finish(key, lock, "");
}

void Worker::TakeKept(Key* key, std::unique_lock<std::mutex>* lock) {
  const std::vector<Result> kept = std::move(key->kept);
  key->kept.clear();
  key->missing = 0;
  try {
    for (const Slice& slice : key->cut) {
      if (!Receive(key, slice, kept[slice.index])) ++key->missing;
    }
  } catch (const std::exception& error) {
    lock->unlock();
    return Abort(Named(error.what()));
  }
  if (key->missing == 0) Finish(key, lock, "");
}

// Ends the key's operation; unlocks, since what waits for the end may start the next one at once.
void Worker::Finish(Key* key, std::unique_lock<std::mutex>* lock, const std::string& error) {
  auto done = std::move(key->operation.done);
  if (recorder_.on()) {
    Event event = EventOfKey(EventKind::kDone, *key);
    event.begin = InNanoseconds(key->since);
    recorder_.Record(event);
  }
  statistics_.Closed(key->id);
  key->busy = false;
  key->operation = Operation();
  lock->unlock();
  done(error);
  {
    std::lock_guard<std::mutex> all(mutex_);
    --open_operations_;
  }
  changed_.notify_all();
}

void Worker::AbortKey(const Key& key, const char* what, const std::exception& error) {
  Abort(Named("key " + key.declared.name + " " + what + ": " + error.what()));
}

}  // namespace kvstore_ext
