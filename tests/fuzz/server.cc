// A server: what workers send, round after round, and what strangers may, in any order.
#include "server/server.h"

#include <cstdlib>
#include <map>

#include "by_hand.h"
#include "keys.h"
#include "keys/idle.h"
#include "keys/shared_scaler.h"
#include "slim_dp/slim_server.h"
#include "support/wire.h"
#include "transport/process_ids.h"
#include "wire.h"

namespace kvstore_ext {
namespace {

constexpr size_t kKeys = 4;

class Job {
 public:
  explicit Job(Input* input) : input_(input), size_(input->Below(256)), server_(Options(), wire_) {
    const size_t choice = input_->Below(256);
    if (choice % 2 == 1) server_.UseOptimizer(0);
    for (uint64_t key = 0; key < kKeys; ++key) {
      kinds_[key] = KindOf(input_->Below(256));
      elements_[key] = SizeOfKey(input_);
    }
    for (int worker = 0; worker < workers_; ++worker) {
      server_.Greet(worker, "host", "");
      if (choice < 192 || worker == 0)
        Deliver(From(worker, JoinMessage("", choice % 4 >= 2, choice % 8 >= 4, choice % 16 >= 8)));
    }
  }

  void Step() {
    Message message = Changed(Next(), input_);
    const size_t way = input_->Below(256);
    if (way < 16) {
      batch_.Add(std::move(message));
      return;
    }
    if (way < 32 && !batch_.empty()) {
      const int peer = message.peer;
      batch_.Add(std::move(message));
      message = batch_.Take();
      message.peer = peer;
    } else if (way < 48 && message.payload.size > 1) {
      // The first part; the message itself may follow, or other parts.
      const size_t bytes = 1 + input_->Below(256) % (message.payload.size - 1);
      message.payload = Received(std::string(message.payload.data.get(), bytes));
    }
    Deliver(std::move(message));
    if (way < 240) Update();
    if (way < 224 || way >= 240) RunTasks();
    if (way % 16 == 15) RunChecks();
    Follow();
  }

 private:
  ServerOptions Options() {
    ServerOptions options;
    options.workers = workers_;
    Shorten(size_, &options.limits);
    slim_ = std::make_shared<SlimServer>(options.limits);
    options.methods["slim_dp"] = slim_;
    return options;
  }

  Message From(int worker, Message message) const {
    message.peer = worker;
    message.header.credit = kPlenty;
    return message;
  }

  // What a worker would send now, but perhaps not this one.
  Message Next() {
    const size_t choice = input_->Below(32);
    const int worker = static_cast<int>(input_->Below(static_cast<size_t>(workers_)));
    const uint64_t key = input_->Below(kKeys);
    switch (choice) {
      case 0: return Of(AnyMessage(input_), PeerOf(Role::kServer, workers_, input_->Below(20)));
      case 1: return From(worker, ControlMessage(MessageType::kBye));
      case 2: return From(worker, Idle(MessageType::kIdle));
      case 3: return From(worker, Idle(MessageType::kLeave));
      case 4: return From(worker, Meet(key));
      case 5: return From(worker, WindowMessage(Window().Pack(), input_->Below(8)));
      case 6: return From(worker, OrderMessage(input_->Text(16), input_->Below(8)));
      case 7: return From(worker, QuestionMessage(MessageType::kAsk, key, "[]", Buffer()));
      case 8: return From(worker, JoinMessage("", false, false, false));
      case 9: return From(worker, OfKey(MessageType::kPull, key, 0));
      case 10: return From(worker, CoreOf(key));
      case 11: return From(worker, ScalerOf(key));
      case 12:
      case 13: return From(worker, InitOf(key, worker));
      default: return From(worker, choice < 16 ? InitOf(key, worker) : PushOf(key, worker));
    }
  }

  static Message Of(Message message, int peer) {
    message.peer = peer;
    return message;
  }

  static Message OfKey(MessageType type, uint64_t key, uint64_t round) {
    Message message = ControlMessage(type);
    message.header.key = key;
    message.header.round = round;
    return message;
  }

  Message Idle(MessageType type) const {
    IdleNotice notice;
    notice.mean = input_->Below(2) == 1;
    if (input_->Below(4) == 0) notice.sparse[input_->Below(2)] = input_->Below(4);
    return ControlMessage(type, notice.Pack());
  }

  Message Meet(uint64_t key) const {
    Message message = MeetMessage("come to barrier 1", input_->Below(2) == 1);
    message.header.key = key;
    message.header.round = input_->Below(4);
    return message;
  }

  Message CoreOf(uint64_t key) const {
    Message message = OfKey(MessageType::kMethod, key, input_->Below(4));
    message.payload = Subset(elements_.at(key), input_->Below(2) == 1).ToBuffer();
    message.header.whole = static_cast<uint32_t>(message.payload.size);
    return message;
  }

  Message ScalerOf(uint64_t key) {
    Message message = OfKey(MessageType::kScaler, key, 1 + scalers_[key]);
    message.text = PackScaler(static_cast<float>(input_->Below(8)));
    message.header.encoding = Encoding::kEncoded;
    return message;
  }

  Sent SentOf(uint64_t key, int worker) {
    const Subset* core = cores_[key].Of(kinds_[key], rounds_[key]);
    return {kinds_[key], key, elements_[key], worker, rounds_[key], workers_, false, 0, core};
  }

  Message WithPayload(Message message, Buffer payload) const {
    message.header.whole = static_cast<uint32_t>(payload.size);
    message.payload = std::move(payload);
    message.payload_is_ours = true;
    return message;
  }

  Message InitOf(uint64_t key, int worker) {
    Message message = OfKey(MessageType::kInit, key, 0);
    message.text = Declared(kinds_[key], elements_[key]).Pack();
    return worker == 0 ? WithPayload(message, PlainPayload(SentOf(key, 0), input_)) : message;
  }

  Message PushOf(uint64_t key, int worker) {
    Message message = OfKey(MessageType::kPush, key, rounds_[key]);
    const bool has_codec = Declared(kinds_[key], 0).has_codec();
    const size_t choice = input_->Below(8);
    if (Declared(kinds_[key], 0).may_skip() && choice == 0) {
      message.header.encoding = Encoding::kSkipped;
      return message;
    }
    if (has_codec && (choice > 1 || IsSlim(kinds_[key]))) {
      message.header.encoding = Encoding::kEncoded;
      return WithPayload(message, EncodedPayload(SentOf(key, worker), input_));
    }
    if (kinds_[key].method == std::string(kBroadcast) && worker != 0) return message;
    return WithPayload(message, PlainPayload(SentOf(key, worker), input_));
  }

  void Deliver(Message message) { wire_->Deliver(std::move(message)); }

  // What the optimizer's thread does: all sums that wait, then this own update, which has failed.
  void Update() {
    kvstore_ext::Update update;
    server_.UpdateFailed(update);
    while (server_.NextUpdate(&update) && !update.failed) {
      const size_t wide = update.elements * SizeOf(SumTypeOf(update.dtype));
      if (update.gradient.size != wide) std::abort();
      if (update.value.size != update.elements * SizeOf(update.dtype)) std::abort();
      std::copy_n(update.gradient.data.get(), update.value.size, update.value.data.get());
      server_.Updated(update);
    }
  }

  // Learns from answers which rounds are open.
  void Follow() {
    for (const Message& sent : wire_->TakeSent()) {
      const Header& header = sent.header;
      if (header.key >= kKeys) continue;
      if (header.type == MessageType::kResult) rounds_[header.key] = header.round + 1;
      if (header.type == MessageType::kScaler) scalers_[header.key] = header.round;
      if (IsSlim(kinds_[header.key])) cores_[header.key].Hear(sent, elements_[header.key]);
    }
  }

  Input* const input_;
  const size_t size_;
  const int workers_ = 1 + static_cast<int>(size_ % 3);
  std::map<uint64_t, KeyKind> kinds_;
  std::map<uint64_t, size_t> elements_;
  std::map<uint64_t, uint64_t> rounds_, scalers_;  // that are open; that were last
  std::map<uint64_t, ToldCores> cores_;
  Batch batch_;
  std::shared_ptr<SlimServer> slim_;
  const std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();
  Server server_;  // last: it uses the above until it ends
};

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return kvstore_ext::RunSteps<kvstore_ext::Job>(data, size);
}
