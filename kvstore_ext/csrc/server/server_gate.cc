// What a server has agreed on with its workers, which everything that they send has to fit
// (transport/gate.h).
#include "keys/payload_sizes.h"
#include "server/server.h"

namespace kvstore_ext {
namespace {

// Whatever else a worker sends comes behind the answer to this.
bool ComesBeforeWelcome(MessageType type) {
  return type == MessageType::kJoin || type == MessageType::kCredit ||
         type == MessageType::kAbort || type == MessageType::kBatch;
}

}  // namespace

void Server::CheckFits(const Message& message) {
  if (message.peer == kScheduler) return;
  const Header& header = message.header;
  Expect(message.job == options_.job, kOfAnotherJob);
  std::lock_guard<std::mutex> lock(mutex_);
  const bool joined = joined_.count(message.peer) != 0;
  Expect(joined || ComesBeforeWelcome(header.type), "that worker has not joined");
  switch (header.type) {
    case MessageType::kJoin: return Expect(!joined, "that worker has joined before");
    case MessageType::kInit: return CheckInit(message);
    case MessageType::kPush: return CheckPush(message);
    case MessageType::kPull:
      return Expect(SliceOf({header.key, header.slice}).round > 0, "the slice has no value yet");
    case MessageType::kScaler:
      Expect(SliceOf({header.key, 0}).reduction->shares_scaler(), "the key has no scaler");
      return KeyOf(header.key).scalers.Check(message, idle_.Has(message.peer));
    case MessageType::kMethod:
      return SliceOf({header.key, header.slice}).reduction->CheckMessage(header.whole);
    case MessageType::kWindow: Window::Unpack(message.text); return;
    case MessageType::kOrder:
      return Expect(message.text.size() % sizeof(uint64_t) == 0, "it holds no keys");
    case MessageType::kIdle:
    case MessageType::kLeave: return CheckPause(message);
    default: return;
  }
}

// From who has sent a message about a slice, which may not be declared yet.
bool Server::HasFirstValueOf(const Message& message) const {
  const auto key = keys_.find(message.header.key);
  if (key == keys_.end()) return false;
  const auto slice = key->second.slices.find(message.header.slice);
  if (slice == key->second.slices.end()) return false;
  return slice->second.round > 0 || slice->second.reduction->heard().count(message.peer) != 0;
}

// A round waits for a worker that has sent what nobody can read, and nothing since.
std::string Server::Unread() {
  return unreadable_.Overdue(options_.limits.silence, [this](const Message& message) {
    const Header& header = message.header;
    if (header.type == MessageType::kInit) return !HasFirstValueOf(message);
    const SliceState& slice = SliceOf({header.key, header.slice});
    const Reduction& reduction = *slice.reduction;
    const bool awaited =
        header.type == MessageType::kMethod
            ? reduction.Awaits(message.peer)
            : header.round == slice.round && reduction.heard().count(message.peer) == 0;
    return awaited && !slice.updating && !idle_.Has(message.peer);
  });
}

// A worker rests once it has the results of all that it has sent.
void Server::CheckPause(const Message& message) {
  const int worker = message.peer;
  IdleNotice::Unpack(message.text);
  Expect(message.header.type == MessageType::kLeave || !idle_.Has(worker), "that worker is idle");
  for (const auto& entry : keys_) {
    const Key& key = entry.second;
    bool waits = key.scalers.senders().count(worker) != 0;
    for (const auto& slice : key.slices) {
      waits |= slice.second.updating || slice.second.reduction->heard().count(worker) != 0;
    }
    Expect(!waits || idle_.Has(worker), "that worker has a round under way");
  }
}

// Workers that describe a key differently, by mistake, are told so later.
void Server::CheckInit(const Message& message) {
  const Header& header = message.header;
  const SliceDeclaration declaration = SliceDeclaration::Unpack(message.text);
  const size_t bytes = PlainBytes(declaration.dtype, declaration.elements);
  const int source = declaration.method_name() == kBroadcast ? header.root : 0;
  Expect(header.round == 0 && header.encoding == Encoding::kPlain, "it is no first value");
  Expect(header.root < options_.workers, "the array is to come from no worker");
  Expect(header.whole == (message.peer == source ? bytes : 0),
         "its payload is not what it declares");
  const auto key = keys_.find(header.key);
  if (key == keys_.end()) return;
  const auto slice = key->second.slices.find(header.slice);
  if (slice == key->second.slices.end()) return;
  Expect(slice->second.round == 0 && slice->second.reduction->heard().count(message.peer) == 0,
         "that worker has initialised the slice before");
}

void Server::CheckPush(const Message& message) {
  const Header& header = message.header;
  const SliceState& slice = SliceOf({header.key, header.slice});
  const SliceDeclaration& declaration = slice.reduction->declaration();
  Expect(header.round > 0 && header.root < options_.workers, "it is no push");
  if (idle_.Has(message.peer)) {
    // To push then is a mistake of the script's, which is told once all parts have come. Of another
    // round than the one that the worker would be in, parts would be kept for ever.
    const auto rested = slice.rested.find(message.peer);
    Expect(rested != slice.rested.end() && header.round == rested->second,
           "that worker rests in another round of the slice");
  } else {
    Expect(header.round == slice.round && !slice.updating &&
               slice.reduction->heard().count(message.peer) == 0,
           "that round of the slice is not open for that worker");
  }
  if (header.encoding != Encoding::kPlain) {
    const bool skipped = header.encoding == Encoding::kSkipped;
    Expect(skipped ? header.whole == 0 : header.whole <= MostEncodedBytes(declaration.elements),
           "its payload is longer than an encoding of the slice");
    Expect(skipped ? declaration.may_skip() : declaration.has_codec(), "the key has no encoding");
    return;
  }
  Expect(options_.methods.count(declaration.method_name()) == 0, "the key's values travel encoded");
  const bool gives = declaration.method_name() != kBroadcast || message.peer == header.root;
  const size_t bytes = PlainBytes(declaration.dtype, declaration.elements);
  Expect(header.whole == (gives ? bytes : 0), "its payload is not the slice");
}

}  // namespace kvstore_ext
