// A worker's operations: a round of a key goes out, and its result comes back (worker.h).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "worker.h"

namespace kvstore_ext {
namespace {

// To wake another thread would take longer than to encode so many elements.
constexpr uint64_t kSmallElements = 8192;

}  // namespace

bool Worker::IsSmall(const Key& key) { return key.declaration.elements <= kSmallElements; }

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
  if (!failure_.reason().empty()) return Finish(key, &lock, failure_.reason());
  const Operation& current = key->operation;
  if (!current.contributes && !key->kept.empty()) return TakeKept(key, &lock);
  if (current.contributes) {
    if (key->rounds > 0 && current.root == 0) {
      learner_.Ready(current.key, key->rounds, current.pushed, key->since, current.priority);
    }
    ++key->rounds;
    key->kept.clear();
  }
  {
    std::lock_guard<std::mutex> all(mutex_);  // SetOrder's
    if (!key->priority_learned) key->priority = current.priority;
  }
  key->arrived.assign(key->slices.size(), false);
  key->missing = key->slices.size();
  trace_.Record("ready", current.key, 0, key->rounds - 1, key->priority);
  Round round{key,          current.key,  key->rounds - 1,  current.contributes, current.input,
              current.root, current.step, current.settings, Encoding::kPlain,    0};
  const bool plain = current.plain;
  const bool compressed = round.contributes && round.number > 0 && key->codec != nullptr;
  key->shares = compressed && key->codec->shares_scaler();
  lock.unlock();
  if (!compressed) return SendRound(round);
  try {
    Compress(std::move(round), plain);
  } catch (const std::exception& error) {
    Abort("worker " + std::to_string(options_.rank) + ": key " + key->declaration.name +
          " cannot be compressed: " + error.what());
  }
}

// Looks at the whole gradient, on the engine's thread. Encoding then waits for its turn, and for
// the other workers where they share scalers: no key waits for another's.
void Worker::Compress(Round round, bool plain) {
  const double since = Now();
  round.scaler = round.key->codec->Prepare(round.input, round.number);
  statistics_.Count([&](Totals* totals) { totals->encode += Now() - since; });
  const bool finite = !std::isnan(round.scaler);
  if (!finite && round.key->raises) {
    return Abort("worker " + std::to_string(options_.rank) + ": the gradient of key " +
                 round.key->declaration.name + ", round " + std::to_string(round.number) +
                 ", has values that are not finite");
  }
  round.encoding = !finite ? Encoding::kSkipped : plain ? Encoding::kPlain : Encoding::kEncoded;
  if (!round.key->shares) return EncodeInTurn(round);
  Message message = ControlMessage(MessageType::kScaler, PackScaler(round.scaler));
  message.header.key = round.id;
  message.header.round = round.number;
  message.header.encoding = plain ? Encoding::kPlain : Encoding::kEncoded;
  Link& link = *links_[round.key->slices.front().server];
  {
    std::lock_guard<std::mutex> lock(round.key->mutex);
    round.key->sharing = std::move(round);
  }
  link.SendControl(std::move(message));
}

void Worker::OnScaler(const Message& message) {
  Key* key = Find(message.header.key);
  Round round;
  {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (!key->busy || !key->shares || message.header.round + 1 != key->rounds) return;
    key->shares = false;
    round = std::move(key->sharing);
  }
  round.scaler = UnpackScaler(message.text);
  round.encoding = std::isnan(round.scaler) ? Encoding::kSkipped : message.header.encoding;
  EncodeInTurn(round);
}

// Slice by slice, so that a large key holds nobody up who is more urgent.
void Worker::EncodeInTurn(const Round& round) {
  const auto shared = std::make_shared<const Round>(round);
  {
    std::lock_guard<std::mutex> lock(round.key->mutex);
    round.key->encoded = shared;
  }
  const bool at_once = IsSmall(*shared->key);
  for (const Slice& slice : shared->key->slices) {
    if (!at_once) {
      encodings_.Push(shared->key->priority, 0, {shared, &slice});
    } else if (!Park({shared, &slice})) {
      TrySendSlice(*shared, slice);
    }
  }
}

void Worker::Encode() {
  Turn turn;
  while (encodings_.Pop(&turn)) {
    if (turn.work == Turn::Work::kPrepareNext) {
      TryPrepareNext(turn);
    } else if (turn.work == Turn::Work::kWrite) {
      WriteInTurn(turn);
    } else if (!Park(turn)) {
      TrySendSlice(*turn.round, *turn.slice);
    }
    turn = Turn();  // what it keeps alive may be large
  }
}

void Worker::SendRound(const Round& round) {
  for (const Slice& slice : round.key->slices) TrySendSlice(round, slice);
}

// The result of the last slice may end the operation at once, so that the round is looked at no
// more after it; what was begun stays readable should the job fail.
void Worker::TrySendSlice(const Round& round, const Slice& slice) {
  try {
    SendSlice(round, slice);
  } catch (const std::exception& error) {
    // What was sent cannot be taken back, so nobody can go on.
    Abort("worker " + std::to_string(options_.rank) + ": key " + round.key->declaration.name +
          " cannot be sent: " + error.what());
  }
}

void Worker::SendSlice(const Round& round, const Slice& slice) {
  Message message;
  message.priority = round.key->priority;
  message.header.key = round.id;
  message.header.slice = slice.index;
  message.header.round = round.number;
  message.header.workers_step = round.step;
  message.header.root = static_cast<uint16_t>(round.root);
  if (!round.contributes) {
    message.header.type = MessageType::kPull;
    links_[slice.server]->SendControl(std::move(message));
    return;
  }
  if (round.number == 0) {
    SliceDeclaration declaration = round.key->declaration;
    declaration.offset = slice.offset;
    declaration.elements = slice.length;
    message.header.type = MessageType::kInit;
    message.text = declaration.Pack();
  } else {
    message.header.type = MessageType::kPush;
    message.header.encoding = round.encoding;
    message.text = round.settings;
  }
  message.payload = PayloadOf(round, slice);
  if (round.number > 0) statistics_.Queued(round.id, slice.index);
  links_[slice.server]->Send(std::move(message));
}

Buffer Worker::PayloadOf(const Round& round, const Slice& slice) {
  if (round.root > 0 && options_.rank != round.root - 1) return Buffer();
  if (round.root == 0 && round.number == 0 && options_.rank != 0) return Buffer();
  if (round.encoding == Encoding::kSkipped) return Buffer();
  const size_t element = SizeOf(round.key->declaration.dtype);
  const double since = Now();
  const auto& codec = round.key->codec;
  const Buffer payload =
      round.encoding == Encoding::kEncoded ? codec->Encode(slice, round.number, round.scaler)
      : codec != nullptr && round.number > 0
          ? codec->TakeAll(slice)
          : Buffer::Borrow(const_cast<char*>(round.input) + slice.offset * element,
                           slice.length * element);
  if (round.number > 0) {
    statistics_.Count([&](Totals* totals) {
      totals->encode += Now() - since;
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
  if (!key->busy || header.round + 1 != key->rounds || header.slice >= key->arrived.size() ||
      key->arrived[header.slice] || (header.encoding != Encoding::kPlain && !key->codec)) {
    if (!failure_.reason().empty()) return;  // which has ended the operation
    std::fprintf(stderr, "kvstore_ext worker %d: dropped a stale result of key %s, round %llu\n",
                 options_.rank, key->declaration.name.c_str(),
                 static_cast<unsigned long long>(header.round));
    return;
  }
  const Slice& slice = key->slices[header.slice];
  const Result result{message.payload, header.encoding};
  if (header.round == 0 && key->codec != nullptr && key->operation.contributes) {
    key->codec->Begin(slice, result.payload);
  }
  statistics_.Arrived(header.key, header.slice);
  trace_.Record("result", header.key, header.slice, header.round, message.priority);
  key->arrived[slice.index] = true;
  const bool encoded = header.encoding == Encoding::kEncoded && key->operation.output != nullptr;
  if (encoded && key->codec->decodes_in_turn() && !IsSmall(*key)) {
    Turn turn(key->encoded, &slice, Turn::Work::kWrite);
    turn.result = result;
    turn.output = key->operation.output;
    encodings_.Push(key->priority, 0, std::move(turn));
    return;
  }
  if (key->operation.output != nullptr) {
    Write(*key, slice, result, key->operation.output);
  } else {
    key->kept.resize(key->slices.size());
    key->kept[slice.index] = result;
  }
  Arrived(key, header.encoding, &lock);
}

// The slices of a key may be written at a time; the operation lasts until all are.
void Worker::WriteInTurn(const Turn& turn) {
  Key* key = turn.round->key;
  try {
    Write(*key, *turn.slice, turn.result, turn.output);
    std::unique_lock<std::mutex> lock(key->mutex);
    if (key->busy && key->encoded == turn.round) Arrived(key, turn.result.encoding, &lock);
  } catch (const std::exception& error) {
    Abort("worker " + std::to_string(options_.rank) + ": " + error.what());
  }
}

// Ends the operation with its last slice.
void Worker::Arrived(Key* key, Encoding encoding, std::unique_lock<std::mutex>* lock) {
  if (--key->missing > 0) return;
  if (encoding == Encoding::kSkipped) {
    key->codec->Discard();
    statistics_.Count([](Totals* totals) { ++totals->non_finite; });
  }
  PrepareNext(key);
  Finish(key, lock, "");
}

void Worker::Write(const Key& key, const Slice& slice, const Result& result, char* output) {
  const double since = Now();
  const size_t element = SizeOf(key.declaration.dtype);
  const size_t bytes = slice.length * element;
  char* to = output + slice.offset * element;
  if (result.encoding == Encoding::kEncoded && key.codec != nullptr) {
    key.codec->Decode(slice, result.payload, to);
  } else if (result.encoding == Encoding::kSkipped && result.payload.size == 0) {
    std::memset(to, 0, bytes);
  } else if (result.payload.size != bytes) {
    throw std::runtime_error("key " + key.declaration.name + ": a server sent " +
                             std::to_string(result.payload.size) + " bytes for a slice of " +
                             std::to_string(bytes));
  } else {
    std::memcpy(to, result.payload.data.get(), bytes);
  }
  statistics_.Count([&](Totals* totals) { totals->decode += Now() - since; });
}

void Worker::TakeKept(Key* key, std::unique_lock<std::mutex>* lock) {
  try {
    for (const Slice& slice : key->slices) {
      Write(*key, slice, key->kept[slice.index], key->operation.output);
    }
  } catch (const std::exception& error) {
    lock->unlock();
    return Abort("worker " + std::to_string(options_.rank) + ": " + error.what());
  }
  key->kept.clear();
  Finish(key, lock, "");
}

// Ends the key's operation; unlocks, since what waits for the end may start the next one at once.
void Worker::Finish(Key* key, std::unique_lock<std::mutex>* lock, const std::string& error) {
  auto done = std::move(key->operation.done);
  trace_.Record("done", key->operation.key, 0, key->rounds - 1, key->priority);
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

}  // namespace kvstore_ext
