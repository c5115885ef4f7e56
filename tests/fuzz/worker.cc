// A worker with keys of every method: what its servers answer, and what strangers may.
#include "worker/worker.h"

#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>

#include "by_hand.h"
#include "keys.h"
#include "keys/gradient_codec.h"
#include "keys/plain_codec.h"
#include "slim_dp/slim_key.h"
#include "transport/process_ids.h"
#include "wire.h"

namespace kvstore_ext {
namespace {

constexpr size_t kLarge = 8200;  // elements, of which so many are encoded by threads
constexpr size_t kKeys = 4;
constexpr int kWorkers = 2;

struct Key {
  KeyKind kind;
  std::shared_ptr<std::vector<float>> input;  // of float64 the bits, as of the output
  std::vector<float> output;
  std::atomic<bool> busy{false};
};

class Job {
 public:
  explicit Job(Input* input) : input_(input), options_(Options()), worker_(options_, wire_) {
    for (int server = 0; server < options_.servers; ++server) {
      Deliver(server, ControlMessage(MessageType::kHello, "host"));
    }
    for (uint64_t id = 0; id < kKeys; ++id) Declare(id);
    for (const auto& model : models_) model->SetSizes(model_elements_ / 4, model_elements_ / 2);
    wire_->TakeSent();
  }

  void Step() {
    const size_t way = input_->Below(256);
    const size_t choice = way % 16;
    if (choice < 4) {
      Start(input_->Below(kKeys));
    } else if (choice == 4) {
      worker_.Ask(static_cast<int>(input_->Below(static_cast<size_t>(options_.servers))), "[]", {});
    } else if (choice == 5) {
      JoinOthers();
    } else {
      Answer(choice);
    }
    if (way < 224) RunTasks();
    if (way / 16 == 13) RunChecks();
    for (Message& sent : wire_->TakeSent()) asked_.push_back(std::move(sent));
  }

 private:
  WorkerOptions Options() {
    const size_t choice = input_->Below(256);
    WorkerOptions options;
    options.rank = static_cast<int>(choice % 2);
    options.workers = kWorkers;
    options.servers = 1 + static_cast<int>(choice / 2 % 2);
    has_large_key_ = choice / 8 % 8 == 7;
    options.slice_bytes = has_large_key_ ? 20000 : 300;
    options.window_bytes = choice / 4 % 2 == 0 ? 0 : 100000;
    Shorten(choice, &options.limits);
    return options;
  }

  void Declare(uint64_t id) {
    Key& key = keys_[id];
    key.kind = KindOf(input_->Below(256));
    size_t elements = SizeOfKey(input_);
    if (id == 0 && has_large_key_) elements = kLarge;
    key.input = std::make_shared<std::vector<float>>(2 * elements, 0.5F);
    key.output.assign(2 * elements, 0);
    worker_.Declare(id, Declared(key.kind, elements), CodecOf(key.kind, elements));
  }

  std::shared_ptr<KeyCodec> CodecOf(const KeyKind& kind, size_t elements) {
    const std::string method = kind.method;
    if (!IsSlim(kind)) {
      if (!Declared(kind, 0).has_codec()) return std::make_shared<PlainCodec>(method);
      return std::make_shared<GradientCodec>(method, kWorkers, false);
    }
    // Of several keys the first one's method, as in a store.
    if (models_.empty()) models_.push_back(std::make_shared<SlimModel>(method, options_.rank));
    model_elements_ += elements;
    return std::make_shared<SlimKey>(models_.front(), kWorkers);
  }

  void Start(uint64_t id) {
    Key& key = keys_[id];
    if (key.busy.exchange(true)) return;
    const size_t choice = input_->Below(8);
    const bool is_broadcast = key.kind.method == std::string(kBroadcast);
    Operation operation;
    operation.key = id;
    operation.kind = choice == 0 ? Operation::Kind::kPull : Operation::Kind::kPush;
    if (is_broadcast && choice > 0) operation.kind = Operation::Kind::kBroadcast;
    // Nothing can be pulled before.
    if (worker_.RoundsOf(id) == 0 && choice == 0) operation.kind = Operation::Kind::kPush;
    const bool keeps = choice == 1 && !IsSlim(key.kind);
    operation.input = reinterpret_cast<const char*>(key.input->data());
    operation.owner = key.input;
    operation.output = keeps ? nullptr : reinterpret_cast<char*>(key.output.data());
    operation.plain = choice == 2;
    operation.done = [&key](const std::string& error) {
      // Who has the result may do without the input, whatever of it is still to leave.
      if (error.empty()) key.input = std::make_shared<std::vector<float>>(*key.input);
      key.busy = false;
    };
    worker_.Start(std::move(operation));
  }

  void JoinOthers() {
    RunTasks();
    for (const Key& key : keys_) {
      if (key.busy) return;
    }
    try {
      worker_.BeginIdle(input_->Below(2) == 1);
      worker_.AwaitDemand(0);
      worker_.EndIdle();
    } catch (const std::runtime_error&) {
      // The core's own threads may fail the job at any time.
      if (worker_.failure().empty()) throw;
    }
  }

  // What a server sends now, perhaps of what was asked of it last or first.
  void Answer(size_t choice) {
    const int server = static_cast<int>(input_->Below(static_cast<size_t>(options_.servers)));
    if (choice == 6) {
      const int peer = PeerOf(Role::kWorker, options_.servers, static_cast<int>(input_->Below(20)));
      return Deliver(peer, AnyMessage(input_));
    }
    if (choice == 7) return Deliver(server, Changed(News(), input_));
    if (asked_.empty()) return;
    const Message asked = choice % 2 == 0 ? asked_.front() : asked_.back();
    if (choice % 2 == 0) asked_.pop_front();
    Deliver(asked.peer < 0 ? server : asked.peer, Changed(AnswerTo(asked), input_));
  }

  Message News() const {
    switch (input_->Below(8)) {
      case 0: return WindowMessage(Window{100 + input_->Below(256), 1000}.Pack(), input_->Below(8));
      case 1: return OrderMessage(input_->Text(16), input_->Below(8));
      case 2: return ControlMessage(MessageType::kMet, "come to barrier 1");
      case 3: return Sparse(1 + input_->Below(3));
      case 4: return NoticeMessage("nobody", false);
      case 5: return ControlMessage(MessageType::kFarewell);
      case 6: return ControlMessage(MessageType::kWelcome);
      default: return PongMessage(PingMessage(input_->Take<int64_t>()), input_->Take<int64_t>());
    }
  }

  static Message Sparse(uint64_t times) {
    Message message = ControlMessage(MessageType::kSparse);
    message.header.round = times;
    return message;
  }

  Message AnswerTo(const Message& asked) {
    Message message = ControlMessage(MessageType::kCredit);
    message.header.key = asked.header.key;
    message.header.slice = asked.header.slice;
    message.header.round = asked.header.round;
    switch (asked.header.type) {
      case MessageType::kScaler:
        message.header.type = MessageType::kScaler;
        message.header.encoding = asked.header.encoding;
        message.text = asked.text;
        return message;
      case MessageType::kAsk:
        return QuestionMessage(MessageType::kAnswer, asked.header.key, "{}", Received("data"));
      case MessageType::kIdle: return Resume();
      case MessageType::kPing: return PongMessage(asked, input_->Take<int64_t>());
      case MessageType::kInit:
      case MessageType::kPush:
      case MessageType::kPull:
        return asked.header.key < kKeys ? OfSlice(message, asked.header.whole) : message;
      default: return message;
    }
  }

  Message Resume() const {
    Resumption resumption;
    if (input_->Below(2) == 1) resumption.rounds[input_->Below(kKeys)] = input_->Below(4);
    return ControlMessage(MessageType::kResume, resumption.Pack());
  }

  // A result, or a core, where so many bytes were pushed.
  Message OfSlice(Message message, size_t pushed) const {
    const uint64_t id = message.header.key;
    const KeyKind& kind = keys_[id].kind;
    const std::vector<Slice> slices = worker_.Slices(id);
    const size_t elements = slices[message.header.slice % slices.size()].length;
    const Sent sent{kind, id, elements, 0, message.header.round, kWorkers, true, pushed};
    const size_t choice = input_->Below(8);
    message.header.type = MessageType::kResult;
    if (IsSlim(kind) && choice < 3) {
      message.header.type = MessageType::kMethod;
      message.header.round = input_->Below(3);
      message.header.encoding = choice == 0 ? Encoding::kSkipped : Encoding::kPlain;
      const size_t bytes = choice == 2 ? 0 : Subset::BytesOf(elements);
      message.payload = Received(input_->Text(bytes) + std::string(bytes, '\0'));
      message.payload.size = bytes;
    } else if (Declared(kind, 0).has_codec() && message.header.round > 0 && choice > 0) {
      message.header.encoding = choice == 1 ? Encoding::kSkipped : Encoding::kEncoded;
      if (choice > 1) message.payload = EncodedPayload(sent, input_);
    } else {
      message.payload = PlainPayload(sent, input_);
    }
    message.header.whole = static_cast<uint32_t>(message.payload.size);
    return message;
  }

  void Deliver(int server, Message message) {
    message.peer = server;
    message.header.credit += kPlenty;
    wire_->Deliver(std::move(message));
  }

  Input* const input_;
  bool has_large_key_ = false;
  const WorkerOptions options_;
  Key keys_[kKeys];
  std::vector<std::shared_ptr<SlimModel>> models_;
  size_t model_elements_ = 0;
  std::deque<Message> asked_;
  const std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();
  Worker worker_;  // last: it uses the above until it ends
};

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return kvstore_ext::RunSteps<kvstore_ext::Job>(data, size);
}
