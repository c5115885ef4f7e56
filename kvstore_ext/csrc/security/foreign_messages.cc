#include "security/foreign_messages.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <limits>
#include <string>

#include "security/early_barriers.h"
#include "security/expected_messages.h"
#include "security/tally.h"
#include "security/zeromq.h"
#include "support/say.h"

namespace kvstore_ext {
namespace {

constexpr size_t kMostFrames = 5;  // a name, the fixed part, keys, values and lengths

using ReceiveFunction = int(ZmqMessage* message, void* socket, int flags);
using SetOptionFunction = int(void* socket, int option, const void* value, size_t bytes);

using PostofficeFunction = void*();
using CustomerFunction = void*(const void* postoffice, int app, int customer, int seconds);

ReceiveFunction* real_receive;
SetOptionFunction* real_set_option;
PostofficeFunction* postoffice;
CustomerFunction* find_customer;  // within so many seconds
Tally foreign;
std::atomic<int32_t> own{kPsLiteNone};

std::string_view TextOf(ZmqMessage* message) {
  return {static_cast<const char*>(ZeroMQ::Get().msg_data(message)),
          ZeroMQ::Get().msg_size(message)};
}

bool HasMore(ZmqMessage* message) { return (ZeroMQ::Get().msg_flags(message) & kZmqMore) != 0; }

// Customers are there before anybody can know of them: ps-lite need not wait for one.
bool HasCustomer(int32_t app, int32_t customer) {
  return find_customer(postoffice(), app, customer, 0) != nullptr;
}

// Anybody may have chosen it.
std::string Printable(std::string_view name) {
  std::string text(name.substr(0, 32));
  for (char& letter : text) {
    if (std::isprint(static_cast<unsigned char>(letter)) == 0) letter = '?';
  }
  return text;
}

// The messages that one thread of ps-lite's receives: each is taken whole, looked at, and then
// handed on frame by frame. Nothing is copied but ZeroMQ's own small structures.
class Inbox {
 public:
  int Receive(ZmqMessage* message, void* socket, int flags) {
    while (next_ == count_) {
      if (!TakeMessage(socket, flags)) return -1;
    }
    const size_t size = ZeroMQ::Get().msg_size(&frames_[next_]);
    ZeroMQ::Get().msg_move(message, &frames_[next_++]);
    return static_cast<int>(std::min(size, size_t{std::numeric_limits<int>::max()}));
  }

 private:
  // False where nothing has come, as errno says. A message that is not expected leaves nothing.
  bool TakeMessage(void* socket, int flags) {
    Clear();
    bool fits = true;
    for (bool more = true; more;) {
      if (count_ == kMostFrames) {
        ZeroMQ::Get().msg_close(&frames_[--count_]);
        fits = false;
      }
      ZmqMessage* frame = &frames_[count_];
      ZeroMQ::Get().msg_init_size(frame, 0);
      // The other frames of a message are there with its first.
      while (real_receive(frame, socket, flags) == -1) {
        if (count_ == 0 || (errno != EINTR && errno != EAGAIN)) {
          Clear();
          return false;
        }
      }
      ++count_;
      more = HasMore(frame);
    }
    const char* why = fits ? WhyNot() : "it has too many parts";
    if (why == nullptr) {
      if (early_.IsEarly(frames_read_, own)) Clear();
      return true;
    }
    if (const uint64_t count = foreign.Add()) Tell(count, why);
    Clear();
    return true;
  }

  const char* WhyNot() {
    if (count_ < 2) return "it has no fixed part";
    frames_read_.name = TextOf(&frames_[0]);
    frames_read_.meta = TextOf(&frames_[1]);
    frames_read_.data.clear();
    for (size_t i = 2; i < count_; ++i) {
      frames_read_.data.push_back(ZeroMQ::Get().msg_size(&frames_[i]));
    }
    return expected_.WhyNot(frames_read_, own);
  }

  void Clear() {
    while (next_ < count_) ZeroMQ::Get().msg_close(&frames_[next_++]);
    next_ = count_ = 0;
  }

  void Tell(unsigned long long count, const char* why) {
    Say("kvstore_ext: dropped " + std::to_string(count) + " message" + (count == 1 ? "" : "s") +
        " that no process of this job sends; the last called itself '" +
        Printable(TextOf(&frames_[0])) + "': " + why +
        "; more are counted, and told with one that comes after a minute");
  }

  ExpectedMessages expected_ = ExpectedMessages::FromEnvironment(&HasCustomer);
  EarlyBarriers early_ = EarlyBarriers::FromEnvironment();
  std::array<ZmqMessage, kMostFrames> frames_;
  size_t count_ = 0;
  size_t next_ = 0;
  PsLiteFrames frames_read_;
};

int Receive(ZmqMessage* message, void* socket, int flags) {
  thread_local Inbox inbox;  // ps-lite receives on one thread
  return inbox.Receive(message, socket, flags);
}

int SetOption(void* socket, int option, const void* value, size_t bytes) {
  if (option == kZmqIdentity) own = PsLiteId({static_cast<const char*>(value), bytes});
  return real_set_option(socket, option, value, bytes);
}

}  // namespace

void DropForeignMessages(Slots* slots) {
  slots->Find("_ZN2ps10Postoffice3GetEv", &postoffice);
  slots->Find("_ZNK2ps10Postoffice11GetCustomerEiii", &find_customer);
  slots->Replace("zmq_msg_recv", &Receive, &real_receive);
  slots->Replace("zmq_setsockopt", &SetOption, &real_set_option);
}

uint64_t ForeignMessages() { return foreign.total(); }

}  // namespace kvstore_ext
