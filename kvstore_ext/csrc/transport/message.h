// What travels between a worker and a server.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "support/buffer.h"
#include "transport/place.h"

namespace kvstore_ext {

enum class MessageType : uint8_t {
  kHello,     // server -> worker: this server has a lane; nothing may be sent to it before; text
              // is its host, and what goes back to it carries the job's number that this has
  kJoin,      // worker -> server: text is the worker's configuration, which must be everybody's
  kWelcome,   // server -> worker: all workers have joined with one configuration
  kInit,      // worker -> server: round 0 of a slice; text declares the key; rank 0's has a payload
  kPush,      // worker -> server: a gradient slice of a round; the text, if any, holds from this
              // round on (see Operation::settings); of a broadcast key, that a worker takes part
  kPull,      // worker -> server: asks for a slice as of a round
  kResult,    // server -> worker: what a round made of a slice, sent unasked to every worker
  kCredit,    // either way: bytes received, where no other message carries the number; sent now and
              // then for nothing new, as a sign of life, also to the scheduler, which answers it;
              // round has the bytes that leave by MXNet's own store, slice numbers that, and
              // workers_step counts the messages that have left, of those that somebody waits for
  kPing,      // worker -> server: measures the link, for rank 0's windows and for a trace's clocks
  kPong,      // server -> worker: the answer, with the ping's time and the server's
  kWindow,    // rank 0 -> servers -> other workers: the window of all links
  kAsk,       // worker -> server: a question to the server's Python
  kAnswer,    // server -> worker: the answer to the question of that number
  kScaler,    // worker -> server: a key's scaler in a round, in the text; encoding is kPlain where
              // the first one by rank wants that; back to all workers: what holds for them
  kMethod,    // either way: about a slice, between the two halves of a key's method, which says
              // what stands in it
  kOrder,     // rank 0 -> server -> other workers: keys in the order the next forward needs them
  kMeet,      // worker -> server 0: it has come to what all workers come to, which text says; of a
              // round in MXNet's own store key and round say which
  kMet,       // server 0 -> worker: all workers have come to what text says
  kSparse,    // server 0 -> idle worker: it is to push nothing for this key of MXNet's own store,
              // as often as round says
  kIdle,      // worker -> server: rounds go without this worker until all are idle (keys/idle.h)
  kResume,    // server -> worker: all are, and take part again
  kLeave,     // worker -> server: this worker begins no more rounds
  kNotice,    // server -> worker: for whom it waits, in the text, and whether it is to say so
  kFarewell,  // server -> worker, scheduler: all workers have left
  kBye,       // worker -> server: it has heard the farewell, and needs this server no more
  kAbort,     // either way: the job failed; text says why
  kBatch,     // either way: several messages, see batch.h
};
constexpr size_t kMessageTypes = static_cast<size_t>(MessageType::kBatch) + 1;
constexpr const char* kMessageNames[] = {
    "hello",  "join",   "welcome", "init",   "push",   "pull",     "result", "credit", "ping",
    "pong",   "window", "ask",     "answer", "scaler", "method",   "order",  "meet",   "met",
    "sparse", "idle",   "resume",  "leave",  "notice", "farewell", "bye",    "abort",  "batch"};
static_assert(sizeof kMessageNames / sizeof *kMessageNames == kMessageTypes, "a name for each");

inline std::string NameOf(MessageType type) {
  const auto number = static_cast<size_t>(type);
  return number < kMessageTypes ? kMessageNames[number] : "message";
}

// What the payload of a slice is.
enum class Encoding : uint8_t {
  kPlain,    // numbers of the key's type
  kEncoded,  // by the key's codec
  kSkipped,  // a worker's gradient is not finite, so that the round does not count: nothing, or,
             // for a value that the server updates, the value as it was. With a message of type
             // kMethod it means what the method says
};

// Fixed part of every message, little endian as every machine that MXNet runs on.
struct Header {
  uint32_t protocol = kProtocol;
  MessageType type = MessageType::kCredit;
  Encoding encoding = Encoding::kPlain;
  uint16_t root = 0;  // of kInit and kPush of a broadcast key: see Operation::root
  uint64_t key = 0;
  uint32_t slice = 0;
  uint32_t workers_step = 0;  // see Operation::step
  uint64_t round = 0;
  uint32_t credit = 0;    // all bytes received from the addressee, modulo 2^32
  uint32_t checksum = 0;  // see transport/checksum.h; 0 without one
  uint32_t offset = 0;    // of this message's payload in the slice's, in bytes
  uint32_t whole = 0;     // bytes of the slice's payload

  static constexpr uint32_t kProtocol = 0x6b760013;
};
static_assert(sizeof(Header) == 48, "the header crosses the wire as it lies in memory");

// As errors say it.
inline std::string RoundNamed(const Header& header) {
  return "of key " + std::to_string(header.key) + ", slice " + std::to_string(header.slice) +
         ", round " + std::to_string(header.round);
}

// Whether its header says which round it is of.
inline bool IsOfRound(MessageType type) {
  switch (type) {
    case MessageType::kInit:
    case MessageType::kPush:
    case MessageType::kPull:
    case MessageType::kResult:
    case MessageType::kScaler:
    case MessageType::kMethod: return true;
    default: return false;
  }
}

// Control messages overtake all data in the receiver's inbox.
constexpr int kControlPriority = std::numeric_limits<int>::max();

// The peer of a message to the scheduler, or from it.
constexpr int kScheduler = -1;

// The peer of a message from somewhere else.
constexpr int kNobody = -2;

// Seconds that the processes of a job whose work is done give each other to leave. Who has not come
// so far by then is gone, which no longer matters.
constexpr double kLastWords = 3;

struct Message {
  // Rank of the other side: a server's at a worker, a worker's at a server. At the scheduler twice
  // the rank, and one more for a worker.
  int peer = 0;
  int priority = kControlPriority;
  uint32_t job = 0;  // the number of the sender's job, as Link::SetJob says
  Header header;
  std::string text;
  Buffer payload;
  std::optional<Place> place;  // where the payload lies; it is then not here
  // Of what was received: nobody else reads these bytes, so that they may be overwritten. Others
  // may lie in memory that the peer has, too, and wants to use again: who keeps them for longer
  // than a round copies them (Kept).
  bool payload_is_ours = false;
  // Of what is sent: somebody else writes into these bytes once the peer has answered.
  bool payload_is_borrowed = false;
};

// The payload, to be kept for long.
inline Buffer Kept(const Message& message) {
  return message.payload_is_ours || message.payload.size == 0 ? message.payload
                                                              : message.payload.Copy();
}

// Whether it is of a round: it is read before the round ends.
inline bool IsReadInRound(const Message& message) {
  return message.header.type == MessageType::kPush || message.header.type == MessageType::kResult;
}

// Without what ps-lite and the network add.
inline size_t BytesOf(const Message& message) {
  return sizeof(Header) + message.text.size() + message.payload.size;
}

inline Message ControlMessage(MessageType type, std::string text = {}) {
  Message message;
  message.header.type = type;
  message.text = std::move(text);
  return message;
}

// What the fields of the header mean in messages that concern no round of a slice.

// The server's host, and the number of its door (memory_door.h), or 0.
inline Message HelloMessage(std::string host, uint64_t door) {
  Message message = ControlMessage(MessageType::kHello, std::move(host));
  message.header.key = door;
  return message;
}
inline uint64_t DoorOf(const Message& hello) { return hello.header.key; }

// Whether the workers want sums in the order of ranks; the number of the memory that this one has
// handed in, or 0; and whether its user has set a window.
inline Message JoinMessage(std::string configuration, bool deterministic, uint64_t memory,
                           bool has_window) {
  Message message = ControlMessage(MessageType::kJoin, std::move(configuration));
  message.header.slice = deterministic ? 1 : 0;
  message.header.key = memory;
  message.header.round = has_window ? 1 : 0;
  return message;
}
inline bool IsDeterministic(const Message& join) { return join.header.slice != 0; }
inline uint64_t MemoryOf(const Message& join) { return join.header.key; }
inline bool HasWindow(const Message& join) { return join.header.round != 0; }

// Whether the server has the memory that the worker has handed in.
inline Message WelcomeMessage(bool shares) {
  Message message = ControlMessage(MessageType::kWelcome);
  message.header.key = shares ? 1 : 0;
  return message;
}
inline bool Shares(const Message& welcome) { return welcome.header.key != 0; }

// Whether the worker waits for the others, and so for kMet.
inline Message MeetMessage(std::string what, bool waits) {
  Message message = ControlMessage(MessageType::kMeet, std::move(what));
  message.header.slice = waits ? 1 : 0;
  return message;
}
inline bool Waits(const Message& meet) { return meet.header.slice != 0; }

// The worker begins this round, from 1 on, of a key of MXNet's own store, and waits for nobody.
inline Message MeetInRound(std::string what, uint64_t key, uint64_t round) {
  Message message = MeetMessage(std::move(what), false);
  message.header.key = key;
  message.header.round = round;
  return message;
}
inline bool IsOfSparseRound(const Message& meet) { return meet.header.round > 0; }

// How often an idle worker is to push nothing for a key of MXNet's own store.
inline Message SparseMessage(uint64_t key, uint64_t times) {
  Message message = ControlMessage(MessageType::kSparse);
  message.header.key = key;
  message.header.round = times;
  return message;
}
inline uint64_t TimesOf(const Message& sparse) { return sparse.header.round; }

// Of those who hear it, one says so on its standard error.
inline Message NoticeMessage(std::string text, bool is_said) {
  Message message = ControlMessage(MessageType::kNotice, std::move(text));
  message.header.slice = is_said ? 1 : 0;
  return message;
}
inline bool IsSaid(const Message& notice) { return notice.header.slice != 0; }

// The sender's time in nanoseconds, which the answer brings back beside that of who gives it.
inline Message PingMessage(int64_t time) {
  Message message = ControlMessage(MessageType::kPing);
  message.header.key = static_cast<uint64_t>(time);
  return message;
}
inline Message PongMessage(const Message& ping, int64_t time) {
  Message message = ControlMessage(MessageType::kPong);
  message.header.key = ping.header.key;
  message.header.round = static_cast<uint64_t>(time);
  return message;
}
inline int64_t TimeOfPing(const Message& pong) { return static_cast<int64_t>(pong.header.key); }
inline uint64_t TimeOfPong(const Message& pong) { return pong.header.round; }

// Windows are numbered, so that a late message does not bring back an old one.
inline Message WindowMessage(std::string window, uint64_t number) {
  Message message = ControlMessage(MessageType::kWindow, std::move(window));
  message.header.round = number;
  return message;
}
inline uint64_t WindowNumberOf(const Message& window) { return window.header.round; }

// Keys in the order in which the next forward pass needs them; numbered, as windows are.
inline Message OrderMessage(std::string keys, uint64_t number) {
  Message message = ControlMessage(MessageType::kOrder, std::move(keys));
  message.header.round = number;
  return message;
}
inline uint64_t OrderNumberOf(const Message& order) { return order.header.round; }

// In each message of credit: bytes that are leaving by MXNet's own store, and the number of that
// announcement.
inline void AnnounceStock(Message* credit, uint64_t bytes, uint32_t number) {
  credit->header.round = bytes;
  credit->header.slice = number;
}
inline uint64_t StockOf(const Message& credit) { return credit.header.round; }
inline uint32_t AnnouncementOf(const Message& credit) { return credit.header.slice; }

// And how many messages have left before it, of those that somebody waits for, modulo 2^32.
inline void AnnounceCount(Message* credit, uint32_t messages) {
  credit->header.workers_step = messages;
}
inline uint32_t CountIn(const Message& credit) { return credit.header.workers_step; }

// That a server or the scheduler is there, and how much its gate has refused so far.
inline Message SignOfLife(uint64_t refused) {
  Message message = ControlMessage(MessageType::kCredit);
  message.header.key = refused;
  return message;
}
inline uint64_t RefusedAt(const Message& sign_of_life) { return sign_of_life.header.key; }

// The number of a question, by which its answer is found.
inline Message QuestionMessage(MessageType ask_or_answer, uint64_t number, std::string text,
                               Buffer payload) {
  Message message = ControlMessage(ask_or_answer, std::move(text));
  message.header.key = number;
  message.payload = std::move(payload);
  return message;
}
inline uint64_t QuestionOf(const Message& ask_or_answer) { return ask_or_answer.header.key; }

}  // namespace kvstore_ext
