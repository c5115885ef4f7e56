// What a worker has agreed on with its servers, which everything that they send has to fit
// (transport/gate.h).
#include "keys/payload_sizes.h"
#include "worker/worker_key.h"

namespace kvstore_ext {

namespace {

constexpr const char* kFromRank0 = "rank 0 is who says that";

// ps-lite keeps no order: what a server says right after its greeting may come before that.
bool ComesBesideHello(MessageType type) {
  return type == MessageType::kHello || type == MessageType::kAbort || type == MessageType::kCredit;
}

}  // namespace

void Worker::CheckFits(const Message& message) {
  if (message.peer == kScheduler) return;
  const Header& header = message.header;
  const Link& link = *links_[message.peer];
  Expect(link.knows_job() ? link.job() == message.job : ComesBesideHello(header.type),
         kOfAnotherJob);
  switch (header.type) {
    case MessageType::kCredit:
      return Expect(StockOf(message) == 0, "a server sends nothing by MXNet's own store");
    case MessageType::kHello:
      return Expect(options_.job == 0 || options_.job == message.job, kOfAnotherJob);
    case MessageType::kResult: return CheckResult(message);
    case MessageType::kScaler:
    case MessageType::kMethod: return CheckOfKey(message);
    case MessageType::kPong: return Expect(link.Awaits(message), "it was not asked");
    case MessageType::kWindow:
      Expect(options_.rank != 0, kFromRank0);
      Window::Unpack(message.text);
      return;
    case MessageType::kSparse:
      Expect(message.peer == 0, "server 0 alone knows of such rounds");
      Expect(idle_, "this worker is not idle");
      return Expect(header.round > 0, "it asks for nothing");
    case MessageType::kOrder:
      Expect(options_.rank != 0, kFromRank0);
      return Expect(message.text.size() % sizeof(uint64_t) == 0, "it holds no keys");
    case MessageType::kResume:
      Expect(idle_, "this worker is not idle");
      for (const auto& [id, round] : Resumption::Unpack(message.text).rounds) {
        Expect(round >= RoundsOf(id), "rounds that this worker has begun are not open");
      }
      return;
    case MessageType::kFarewell: return Expect(leaving_, "this worker has not left");
    case MessageType::kAnswer: {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto asked = asked_.find(QuestionOf(message));
      return Expect(asked != asked_.end() && asked->second.server == message.peer,
                    "it was not asked");
    }
    default: return;
  }
}

// The slice of a key, where this server has it.
const Slice& Worker::SliceAt(const Key& key, const Message& message) {
  const uint32_t index = message.header.slice;
  Expect(index < key.cut.size() && key.cut[index].server == message.peer,
         "that server has no such slice");
  return key.cut[index];
}

void Worker::CheckResult(const Message& message) {
  Key& key = *Find(message.header.key);
  const uint64_t elements = SliceAt(key, message).length;
  const size_t bytes = message.header.whole;
  if (message.header.encoding == Encoding::kEncoded) {
    Expect(bytes <= MostEncodedBytes(elements), "it is longer than an encoding of the slice");
    Expect(key.declared.has_codec(), "the key has no encoding");
  } else {
    Expect(message.header.encoding == Encoding::kPlain || key.declared.may_skip(),
           "no round of the key is skipped");
    Expect(bytes == 0 || bytes == PlainBytes(key.declared.dtype, elements), "it is not the slice");
  }
  // Here, and not once it is whole: parts of what nobody waits for would be kept for ever. Results
  // that were on their way when the job failed are nobody's fault.
  std::lock_guard<std::mutex> lock(key.mutex);
  Expect(Awaits(key, message.header) || !failure_.reason().empty(), "no operation waits for it");
}

void Worker::CheckOfKey(const Message& message) {
  const Key& key = *Find(message.header.key);
  if (message.header.type == MessageType::kMethod) SliceAt(key, message);
  key.codec->CheckMessage(message);
}

// An operation waits for a server that has sent what nobody can read, and nothing since.
std::string Worker::Unread() {
  return unreadable_.Overdue(options_.limits.silence, [this](const Message& message) {
    const Header& header = message.header;
    Key& key = *Find(header.key);
    std::lock_guard<std::mutex> lock(key.mutex);
    if (!key.busy || header.slice >= key.arrived.size()) return false;
    const bool is_result = header.type == MessageType::kResult;
    if (is_result && !key.IsLast(header.round)) return false;
    // A core is waited for before the round can leave; or after that, where it came with a refusal.
    const bool before = !is_result && header.encoding != Encoding::kSkipped;
    return before ? !key.admitted && key.codec->Awaits(message) : !key.arrived[header.slice];
  });
}

}  // namespace kvstore_ext
