#include "transport/gate.h"

#include <exception>

#include "support/printable.h"
#include "support/say.h"
#include "transport/checksum.h"

namespace kvstore_ext {
namespace {

// To whom a message of a type may go, who alone may send it, and whether it has a payload.
constexpr int kToServer = 1, kToWorker = 2, kToScheduler = 4, kToAll = 7;
constexpr int kPayload = 8;      // others have none
constexpr int kOfRankZero = 16;  // where it goes to a server
constexpr int kOfServer = 32;    // where it goes to the scheduler
constexpr int kRules[] = {
    kToWorker,                             // hello
    kToServer,                             // join
    kToWorker,                             // welcome
    kToServer | kPayload,                  // init
    kToServer | kPayload,                  // push
    kToServer,                             // pull
    kToWorker | kPayload,                  // result
    kToAll,                                // credit
    kToServer,                             // ping
    kToWorker,                             // pong
    kToServer | kToWorker | kOfRankZero,   // window
    kToServer | kPayload,                  // ask
    kToWorker | kPayload,                  // answer
    kToServer | kToWorker,                 // scaler
    kToServer | kToWorker | kPayload,      // method
    kToServer | kToWorker | kOfRankZero,   // order
    kToServer,                             // meet
    kToWorker,                             // met
    kToWorker,                             // sparse
    kToServer,                             // idle
    kToWorker,                             // resume
    kToServer,                             // leave
    kToWorker,                             // notice
    kToWorker | kToScheduler | kOfServer,  // farewell
    kToServer,                             // bye
    kToAll,                                // abort
    kToServer | kToWorker | kPayload,      // batch
};
static_assert(sizeof kRules / sizeof *kRules == kMessageTypes, "a rule for each");

int RuleOf(MessageType type) {
  Expect(static_cast<size_t>(type) < kMessageTypes, "there is no such message");
  return kRules[static_cast<size_t>(type)];
}

void CheckSender(Side side, const Message& message, int rule) {
  Expect(message.peer != kNobody, "no process of the job has such a number");
  const int to = side == Side::kServer   ? kToServer
                 : side == Side::kWorker ? kToWorker
                                         : kToScheduler;
  Expect((rule & to) != 0, "a process of its kind sends no such message");
  if (message.peer == kScheduler) {
    Expect(side != Side::kScheduler && message.header.type == MessageType::kCredit,
           "the scheduler sends no such message");
  } else if (side == Side::kServer) {
    Expect((rule & kOfRankZero) == 0 || message.peer == 0, "worker 0 alone sends such a message");
  } else if (side == Side::kScheduler) {
    Expect((rule & kOfServer) == 0 || message.peer % 2 == 0, "servers alone send such a message");
  }
}

void CheckBytes(const Message& message, int rule) {
  const Header& header = message.header;
  const size_t bytes = message.payload.size;
  Expect(header.encoding <= Encoding::kSkipped, "there is no such encoding");
  Expect((rule & kPayload) != 0 || (header.whole == 0 && bytes == 0), "it has no payload");
  Expect(size_t{header.offset} + bytes <= header.whole && (bytes > 0 || header.whole == 0),
         "its payload is not the part that it should be");
  Expect(header.type != MessageType::kAbort || !message.text.empty(), "it says no reason");
  Expect(header.type != MessageType::kBatch || bytes == header.whole, "a batch has no parts");
}

}  // namespace

std::string Described(const Message& message) {
  const bool is_batch = message.header.type == MessageType::kBatch;
  return "a " + NameOf(message.header.type) + " from number " + std::to_string(message.peer) +
         (is_batch ? "" : " " + RoundNamed(message.header));
}

bool Gate::Admits(const Message& message) {
  // Whatever else is wrong with it then.
  if (has_checksum_ && has_checksum_(message)) CheckUndamaged(message);
  try {
    const int rule = RuleOf(message.header.type);
    CheckSender(side_, message, rule);
    CheckBytes(message, rule);
    if (check_) check_(message);
  } catch (const std::exception& error) {
    Refuse(Described(message), error.what());
    return false;
  }
  return true;
}

void Gate::Refuse(const std::string& what, const std::string& why) {
  if (refused_++ > 0) return;
  Say("kvstore_ext: refused what no process of this job sends: " + Printable(what) + ": " +
      Printable(why) + "; more of it is only counted, in stats()");
}

}  // namespace kvstore_ext
