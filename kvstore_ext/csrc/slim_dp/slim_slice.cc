#include "slim_dp/slim_slice.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "codecs/kernels/kernels.h"
#include "slim_dp/explorer.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

// Throws Unfit for bytes that no worker makes of an update.
UpdateHeader HeaderOf(const Buffer& bytes) {
  Expect(bytes.size >= sizeof(UpdateHeader), "it is shorter than an update's header");
  return Load<UpdateHeader>(bytes.data.get());
}

double SumOfMagnitudes(const Buffer& values) {
  return kernels().magnitudes(reinterpret_cast<const float*>(values.data.get()),
                              values.size / sizeof(float));
}

}  // namespace

SlimSlice::Snapshot::Snapshot(uint64_t of_round, Buffer of_parameters, Buffer of_update)
    : round(of_round),
      parameters(std::move(of_parameters)),
      update(std::move(of_update)),
      parameters_sum(SumOfMagnitudes(parameters)),
      update_sum(SumOfMagnitudes(update)) {}

SlimSlice::SlimSlice(SliceContext given, std::function<void()> finished)
    : Reduction(std::move(given)),
      options_(SlimOptions::Parse(declaration().method)),
      elements_(declaration().elements),
      values_(options_.values.empty() ? nullptr : MakeCodec(options_.values, context().workers)),
      finished_(std::move(finished)),
      sum_(declaration().dtype, elements_, context().workers, context().deterministic,
           [this](float* sum, const Buffer& bytes) { AddTo(sum, bytes); }),
      together_(context().workers) {
  CheckSlimType(declaration());
}

bool SlimSlice::Accept(const Message& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int worker = message.peer;
  if (message.header.encoding == Encoding::kEncoded) {
    const UpdateHeader header = CheckedHeader(message);
    const auto core = CoreOrAsk(worker, header);
    if (core == nullptr) return false;
    TakeTogether(header, *core, message.payload);
    sum_.AddBytes(worker, message.payload);
  } else {
    Expect(message.header.round == 0, "slim_dp's updates travel encoded");
    AddPlain(message, &sum_);
  }
  return true;
}

// Throws Unfit for bytes that are no update, and std::invalid_argument for one of another round
// than the others', which is a mistake of the scripts'.
UpdateHeader SlimSlice::CheckedHeader(const Message& message) const {
  const int worker = message.peer;
  const UpdateHeader header = HeaderOf(message.payload);
  Expect(message.header.round > 0, "a first value travels as it is");
  Expect(header.rank == static_cast<uint32_t>(worker), "it has another worker's rank");
  Expect(header.selection == static_cast<uint32_t>(options_.SelectionOf(header.round)) &&
             header.full == (options_.IsFull(header.round) ? 1 : 0),
         "its round has another selection, or another size");
  Expect(!earlier_rounds_ || header.round == *earlier_rounds_ + message.header.round,
         "it is of another round than the one that is open");
  if (!heard().empty() && header.round != pushed_) {
    throw std::invalid_argument("worker " + std::to_string(worker) + " is in round " +
                                std::to_string(header.round) + " of slim_dp, others in " +
                                std::to_string(pushed_) +
                                ": either all workers load saved states, or none");
  }
  return header;
}

// The core with which an update was made, if it is the one that is here; otherwise nothing, once
// the worker has been told the right one, or asked for it.
std::shared_ptr<const Core> SlimSlice::CoreOrAsk(int worker, const UpdateHeader& header) {
  const auto core = CoreOf(header.selection);
  if (core != nullptr && core->signature == header.signature) return core;
  const Buffer members = core == nullptr ? Buffer() : core->members.ToBuffer();
  if (core == nullptr) asked_[worker] = header.selection;
  context().send(worker, CoreMessage{header.selection, true, members}.Pack());
  return nullptr;
}

// Notes what of the slice an update is about. Throws Unfit where that cannot be.
void SlimSlice::TakeTogether(const UpdateHeader& header, const Core& core, const Buffer& bytes) {
  Subset together = Explored(header, core, bytes);
  CheckValues(header, together, bytes);
  together_[header.rank] = std::move(together);
  pushed_ = header.round;
  full_ = header.full != 0;
}

void SlimSlice::AddNothing(int worker, double factor) {
  std::lock_guard<std::mutex> lock(mutex_);
  sum_.AddNothing(worker);
  together_[worker] = Subset();
  factor_ = factor;
  if (factor == 1) ++zeros_;
}

void SlimSlice::Finish(uint64_t round) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    initial_ = round == 0;
    if (!initial_) {
      Apply();
      earlier_rounds_ = pushed_ - round;
    } else {
      value_ = sum_.Take();
      // Not before so many elements have come: what a declaration says takes no memory.
      if (options_.fixed() || elements_ == 0) {
        cores_[0] = std::make_shared<Core>(Subset(elements_, options_.core_share == 1));
      }
      if (!options_.fixed()) {
        snapshot_ = std::make_shared<Snapshot>(0, value_.Copy(), Buffer());
      }
    }
  }
  finished_();
}

// Throws Unfit for an explorer that there cannot be.
Subset SlimSlice::Explored(const UpdateHeader& header, const Core& core,
                           const Buffer& bytes) const {
  Expect(header.explorers <= elements_ - core.members.count(),
         "its explorer has more elements than there are outside the core");
  if (!options_.sends_indices) {
    const uint64_t stream =
        ExplorerStream(options_, static_cast<int>(header.rank), context().name.first, header.round,
                       declaration().offset);
    return Explore(core.members, header.explorers, stream);
  }
  const size_t index_bytes = options_.IndexBytes(header.explorers);
  Expect(bytes.size >= sizeof header + index_bytes, "it is shorter than its explorer's indices");
  const char* from = bytes.data.get() + bytes.size - index_bytes;
  Subset together = core.members;
  for (uint32_t i = 0; i < header.explorers; ++i, from += sizeof(uint32_t)) {
    const auto element = Load<uint32_t>(from);
    Expect(element < elements_ && !together.Has(element),
           "its explorer has an element that there is not, or twice");
    together.Insert(element);
  }
  return together;
}

// Before anything is changed: what is added later has passed. Throws Unfit.
void SlimSlice::CheckValues(const UpdateHeader& header, const Subset& together,
                            const Buffer& bytes) const {
  const size_t count = CountOf(header, together);
  const Buffer values = ValuesOf(header, bytes);
  try {
    if (values_ != nullptr) return values_->Check(count, values);
    CheckSize("slim_dp", values, count, count * sizeof(float));
  } catch (const std::invalid_argument& error) {
    throw Unfit(error.what());
  }
}

Buffer SlimSlice::ValuesOf(const UpdateHeader& header, const Buffer& bytes) const {
  const size_t behind = options_.IndexBytes(header.explorers);
  return bytes.Range(sizeof header, bytes.size - sizeof header - behind);
}

size_t SlimSlice::CountOf(const UpdateHeader& header, const Subset& together) const {
  return header.full != 0 ? elements_ : together.count();
}

void SlimSlice::AddTo(float* sum, const Buffer& bytes) const {
  const UpdateHeader header = HeaderOf(bytes);
  const Subset& together = together_[header.rank];
  const size_t count = CountOf(header, together);
  const Buffer encoded = ValuesOf(header, bytes);
  std::vector<float> decoded;
  const auto* values = reinterpret_cast<const float*>(encoded.data.get());
  if (values_ != nullptr) {
    decoded.resize(count);
    values_->AddTo(decoded.data(), count, encoded);
    values = decoded.data();
  }
  if (header.full != 0) {
    for (size_t i = 0; i < elements_; ++i) sum[i] += values[i];
  } else {
    together.ForEach([&](size_t i) { sum[i] += *values++; });
  }
}

// Whoever asks: before the first value there is nothing to write to, and around a core of another
// slice's size explorers would be drawn that lie beyond the last element.
void SlimSlice::Resume(const Buffer& parameters, std::map<uint64_t, Subset> cores) {
  std::lock_guard<std::mutex> lock(mutex_);
  CheckSize("plain", parameters, elements_, elements_ * sizeof(float));
  if (value_.size != parameters.size) {
    throw std::invalid_argument("key " + declaration().name + " has no first value yet");
  }
  for (const auto& core : cores) {
    if (core.second.elements() == elements_) continue;
    throw std::invalid_argument("a core of " + std::to_string(core.second.elements()) +
                                " elements for a slice of " + std::to_string(elements_));
  }
  if (parameters.size > 0) std::memcpy(value_.data.get(), parameters.data.get(), value_.size);
  snapshot_ = nullptr;
  earlier_rounds_.reset();
  if (!options_.fixed() && elements_ > 0) cores_.clear();
  for (auto& core : cores) SetCore(core.first, std::move(core.second));
}

void SlimSlice::Apply() {
  const bool counts = options_.mean_of_pushed && !full_;
  const double factor = std::exchange(factor_, 1);
  const Buffer sum = sum_.TakeWide(counts ? 1 : factor);
  const int workers = context().workers;
  auto* parameters = reinterpret_cast<float*>(value_.data.get());
  const auto* update = reinterpret_cast<const float*>(sum.data.get());
  if (counts) {
    const std::vector<int> pushes = CountPushes();
    std::vector<float> rates(workers + 1, 0.0F);  // by the number of pushes
    for (int count = 1; count <= workers; ++count) {
      rates[count] = static_cast<float>(options_.server_rate / count);
    }
    for (size_t i = 0; i < elements_; ++i) parameters[i] += rates[pushes[i]] * update[i];
  } else {
    const auto rate = static_cast<float>(options_.server_rate / workers);
    for (size_t i = 0; i < elements_; ++i) parameters[i] += rate * update[i];
  }
  zeros_ = 0;
  if (!full_ || options_.fixed()) return;
  snapshot_ = std::make_shared<Snapshot>(pushed_, value_.Copy(), sum);
}

// By element, how many workers have pushed it in this round.
std::vector<int> SlimSlice::CountPushes() const {
  std::vector<int> pushes(elements_, zeros_);
  for (const Subset& together : together_) {
    together.ForEach([&](size_t i) { ++pushes[i]; });
  }
  return pushes;
}

SliceAnswer SlimSlice::AnswerTo(int worker) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (initial_) return {Encoding::kPlain, value_};
  const Subset& together = together_[worker];
  Buffer answer = Buffer::Allocate(together.count() * sizeof(float));
  together.TakeOut(reinterpret_cast<const float*>(value_.data.get()),
                   reinterpret_cast<float*>(answer.data.get()));
  return {Encoding::kEncoded, answer};
}

SliceAnswer SlimSlice::Value() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {Encoding::kPlain, value_};
}

bool SlimSlice::HasSnapshot(uint64_t round) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return snapshot_ != nullptr && snapshot_->round == round;
}

std::shared_ptr<SlimSlice::Snapshot> SlimSlice::TakeSnapshot(uint64_t round) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (snapshot_ == nullptr || snapshot_->round != round) return nullptr;
  return std::move(snapshot_);
}

void SlimSlice::TellCore(uint64_t selection, Subset members) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Buffer told = members.ToBuffer();
  SetCore(selection, std::move(members));
  for (int worker = 0; worker < context().workers; ++worker) {
    context().send(worker, CoreMessage{selection, false, told}.Pack());
  }
}

void SlimSlice::CheckMessage(size_t bytes) const {
  Expect(bytes == Subset::BytesOf(elements_), "a core of the slice has another number of bytes");
}

void SlimSlice::OnMessage(const Message& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  const CoreMessage core = CoreMessage::Unpack(message);
  const auto asked = asked_.find(message.peer);
  Expect(asked != asked_.end() && asked->second == core.selection, "it was not asked for a core");
  Subset members = SubsetOf(elements_, core.members);
  asked_.erase(asked);
  if (CoreOf(core.selection) == nullptr) SetCore(core.selection, std::move(members));
}

// Another worker may have sent the core meanwhile.
bool SlimSlice::Awaits(int worker) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto asked = asked_.find(worker);
  return asked != asked_.end() && CoreOf(asked->second) == nullptr;
}

void SlimSlice::SetCore(uint64_t selection, Subset members) {
  cores_[selection] = std::make_shared<Core>(std::move(members));
  while (elements_ > 0 && cores_.size() > kCoresKept) cores_.erase(cores_.begin());
}

std::shared_ptr<const Core> SlimSlice::CoreOf(uint64_t selection) const {
  const auto found = cores_.find(options_.fixed() || elements_ == 0 ? 0 : selection);
  return found == cores_.end() ? nullptr : found->second;
}

size_t SlimSlice::held_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t kept =
      snapshot_ == nullptr ? 0 : snapshot_->parameters.size + snapshot_->update.size;
  return value_.size + sum_.held_bytes() + kept;
}

}  // namespace kvstore_ext
