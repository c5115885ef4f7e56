// A server's slice under Slim-DP: updates and cores of workers, and the choice of a new core.
#include <cstdlib>
#include <stdexcept>

#include "keys.h"
#include "slim_dp/slim_server.h"

namespace kvstore_ext {
namespace {

constexpr int kWorkers = 3;                       // of fewer each order of adding up is the same
constexpr size_t kSizes[] = {0, 1, 63, 70, 300};  // elements

const KeyKind& SlimKind(size_t number) {
  static const std::vector<KeyKind> kinds = [] {
    std::vector<KeyKind> all;
    for (const KeyKind& kind : kKinds) {
      if (IsSlim(kind)) all.push_back(kind);
    }
    return all;
  }();
  return kinds[number % kinds.size()];
}

class Slice {
 public:
  explicit Slice(Input* input) : input_(input), kind_(SlimKind(input->Below(256))) {
    SliceContext context;
    context.declaration = Declared(kind_, kSizes[input->Below(sizeof kSizes / sizeof *kSizes)]);
    context.workers = kWorkers;
    context.deterministic = input->Below(2) == 1;
    elements_ = context.declaration.elements;
    context.send = [this](int, const Message& told) { cores_.Hear(told, elements_); };
    reduction_ = server_.MakeReduction(std::move(context));
  }

  void Step() {
    const size_t choice = input_->Below(16);
    if (choice < 10) return Push(static_cast<int>(choice % kWorkers));
    if (choice < 12) return TakeCore();
    if (choice < 14) return Choose();
    Resume();
  }

 private:
  void Push(int worker) {
    if (reduction_->heard().count(worker) != 0) return;
    Message message = ControlMessage(MessageType::kPush);
    message.peer = worker;
    message.header.round = round_;
    const Subset* core = cores_.Of(kind_, round_);
    const Sent sent{kind_, 0, elements_, worker, round_, kWorkers, false, 0, core};
    if (round_ > 0) {
      message.header.encoding = Encoding::kEncoded;
      message.payload = EncodedPayload(sent, input_);
    } else if (worker == 0) {
      message.payload = PlainPayload(sent, input_);
    }
    message.header.whole = static_cast<uint32_t>(message.payload.size);
    message = Changed(std::move(message), input_);
    message.header.round = round_;
    // The gate lets in no first value of another size.
    const size_t first = worker == 0 ? elements_ * sizeof(float) : 0;
    if (round_ == 0 && message.payload.size != first) return;
    if (Accepts(message) && reduction_->heard().size() == kWorkers) Finish();
  }

  // What no worker makes is Unfit; std::invalid_argument is for scripts in different rounds.
  // Neither may count.
  bool Accepts(const Message& message) {
    try {
      return reduction_->Accept(message);
    } catch (const Unfit&) {
    } catch (const std::invalid_argument&) {
    }
    if (reduction_->heard().count(message.peer) != 0) std::abort();
    return false;
  }

  void Finish() {
    reduction_->Finish(round_++);
    for (int worker = 0; worker < kWorkers; ++worker) {
      const Buffer answer = reduction_->AnswerTo(worker).payload;
      if (answer.size > elements_ * sizeof(float)) std::abort();
    }
  }

  void TakeCore() {
    Message message = ControlMessage(MessageType::kMethod);
    message.header.round = input_->Below(4);
    std::string bytes(Subset::BytesOf(elements_), '\0');
    input_->Copy(bytes.data(), bytes.size());
    message.payload = Received(bytes);
    reduction_->CheckMessage(message.payload.size);
    try {
      reduction_->OnMessage(message);
    } catch (const Unfit&) {
    }
  }

  // As rank 0 asks for it.
  void Choose() {
    const uint64_t round = input_->Below(8);
    if (!server_.AwaitRound(0, round, 1, 0)) return;
    const auto selection = server_.AwaitSelection(0, round, 1);
    selection->SumsOfSlices();
    selection->Sample(input_->Take<float>(), 1 + input_->Below(elements_ + 1));
    selection->Divide({input_->Take<int32_t>(), input_->Take<int32_t>()});
    const auto bits = input_->Take<uint32_t>();
    selection->CountUpper();
    selection->CountLower(bits >> 16);
    const auto equal = selection->CountEqual(bits);
    server_.SetCores(input_->Below(4), selection->Choose(bits, equal));
  }

  // What does not fit the slice, or comes before its first value, changes nothing.
  void Resume() {
    const size_t elements = Size(), of_core = Size();
    const Sent sent{kind_, 0, elements, 0, round_, kWorkers, false};
    const Buffer parameters = PlainPayload(sent, input_);
    std::map<uint64_t, Subset> cores;
    cores.emplace(input_->Below(4), Subset(of_core, input_->Below(2) == 1));
    const bool begun = round_ > 0 || elements_ == 0;
    const bool fits = begun && elements == elements_ && of_core == elements_;
    try {
      server_.Resume({0, 0}, parameters, std::move(cores));
      if (!fits) std::abort();
    } catch (const std::invalid_argument&) {
      if (fits) std::abort();
    }
  }

  // Mostly the slice's own.
  size_t Size() {
    const size_t choice = input_->Below(16);
    return choice < sizeof kSizes / sizeof *kSizes ? kSizes[choice] : elements_;
  }

  Input* const input_;
  const KeyKind kind_;
  SlimServer server_{Limits{1, 1, 0}};
  size_t elements_ = 0;
  uint64_t round_ = 0;
  ToldCores cores_;
  std::unique_ptr<Reduction> reduction_;
};

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Input input(data, size);
  kvstore_ext::Slice slice(&input);
  while (!input.empty()) slice.Step();
  return 0;
}
