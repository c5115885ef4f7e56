#include "slim_dp/slim_key.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "slim_dp/explorer.h"
#include "support/wire.h"
#include "transport/gate.h"

namespace kvstore_ext {

SlimKey::SlimKey(std::shared_ptr<SlimModel> model, int workers)
    : model_(std::move(model)),
      values_(model_->options().values.empty() ? nullptr
                                               : MakeCodec(model_->options().values, workers)) {}

void SlimKey::Attach(KeyLane* lane) {
  CheckSlimType(lane->declaration());
  base_.resize(lane->declaration().elements);
  for (const Slice& slice : lane->slices()) {
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->number = model_->Add(slice.length);
  }
  KeyCodec::Attach(lane);
}

// As a key that travels whole, which this one does at a full push. Slices cut by what travels
// otherwise would be so few that servers have nothing to answer for long: GoogLeNet's exchange took
// a quarter longer with eight hosts.
double SlimKey::bytes_per_element(DType) const { return sizeof(float); }

std::optional<Encoding> SlimKey::Prepare(const char* local, uint64_t round, bool) {
  local_ = reinterpret_cast<const float*>(local);
  round_ = round;
  limit_ = scaler_ = ScalerOfUpdate();
  if (std::isnan(limit_)) RefuseInput(round);
  if (values_ == nullptr || !values_->shares_scaler()) return Await(round);
  shared_.Ask(&lane(), round, scaler_, false, [this, round](float largest, Encoding) {
    scaler_ = largest;
    const auto encoding = Await(round);
    if (encoding) lane().AdmitRound(round, *encoding);
  });
  return std::nullopt;
}

float SlimKey::ScalerOfUpdate() const {
  if (values_ == nullptr) return 0;
  std::vector<float> update(base_.size());
  for (size_t i = 0; i < update.size(); ++i) update[i] = local_[i] - base_[i];
  return values_->Scaler(update.data(), update.size());
}

// The round travels encoded once all its cores are known.
std::optional<Encoding> SlimKey::Await(uint64_t round) {
  const auto admit = [this, round] { lane().AdmitRound(round, Encoding::kEncoded); };
  if (!model_->ReadyOr(round, admit)) return std::nullopt;
  return Encoding::kEncoded;
}

// What a round will communicate is drawn while gradients are computed; not where that is not known
// yet, or done already.
void SlimKey::PrepareNext(const Slice& slice, uint64_t round) {
  if (!model_->Ready(round)) return;
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  if (part.round < model_->RoundOf(round)) DrawOnce(&part, slice, round);
}

void SlimKey::DrawOnce(Part* part, const Slice& slice, uint64_t round) {
  auto core = model_->CoreOf(part->number, round);
  const uint64_t total = model_->RoundOf(round);
  if (part->round == total && part->core == core) return;
  const uint64_t stream =
      ExplorerStream(model_->options(), model_->rank(), lane().key(), total, slice.offset);
  part->together = Explore(core->members, model_->ExplorersOf(part->number, round), stream);
  part->core = std::move(core);
  part->round = total;
}

Buffer SlimKey::Encode(const Slice& slice, uint64_t round, Encoding encoding) {
  if (encoding != Encoding::kEncoded) throw std::logic_error("slim_dp cannot send a key whole");
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  DrawOnce(&part, slice, round);
  const UpdateHeader header = HeaderOf(part);
  const Subset all = header.full != 0 ? Subset(slice.length, true) : Subset();
  const Subset& members = header.full != 0 ? all : part.together;
  Buffer encoded;
  if (values_ != nullptr) {
    std::vector<float> values(members.count());
    TakeOut(members, slice, values.data());
    const Draws draws(values_->seed(), header.rank, lane().key(), part.round);
    encoded = values_->EncodeClipped(values.data(), values.size(), limit_, scaler_,
                                     draws.From(slice.offset));
  }
  const size_t value_bytes = values_ != nullptr ? encoded.size : members.count() * sizeof(float);
  const size_t index_bytes = model_->options().IndexBytes(header.explorers);
  Buffer bytes = Buffer::Allocate(sizeof header + value_bytes + index_bytes);
  char* to = bytes.data.get();
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  if (values_ == nullptr) {
    TakeOut(members, slice, reinterpret_cast<float*>(to));
  } else if (encoded.size > 0) {
    std::memcpy(to, encoded.data.get(), encoded.size);
  }
  to += value_bytes;
  if (index_bytes > 0) {
    part.together.ForEach([&](size_t i) {
      if (part.core->members.Has(i)) return;
      Store(to, static_cast<uint32_t>(i));
      to += sizeof(uint32_t);
    });
  }
  return bytes;
}

UpdateHeader SlimKey::HeaderOf(const Part& part) const {
  const SlimOptions& options = model_->options();
  UpdateHeader header;
  header.signature = part.core->signature;
  header.round = part.round;
  header.selection = static_cast<uint32_t>(options.SelectionOf(part.round));
  header.explorers = static_cast<uint32_t>(part.together.count() - part.core->members.count());
  header.rank = static_cast<uint32_t>(model_->rank());
  header.full = options.IsFull(part.round) ? 1 : 0;
  return header;
}

void SlimKey::TakeOut(const Subset& members, const Slice& slice, float* values) const {
  const float* local = local_ + slice.offset;
  const float* base = base_.data() + slice.offset;
  members.ForEach([&](size_t i) { *values++ = local[i] - base[i]; });
}

bool SlimKey::Receive(const Slice& slice, uint64_t round, const Result& result, char* local) {
  if (result.encoding == Encoding::kPlain) {
    TakeWhole(slice, result, local);
    return true;
  }
  if (slice.length == 0) return true;
  Expect(round > 0 && local != nullptr, "a first value travels as it is");
  if (!encodes_in_turn()) {
    Merge(slice, result.payload, local);
    return true;
  }
  {
    Part& part = *parts_.at(slice.index);
    std::lock_guard<std::mutex> lock(part.mutex);
    CheckMerges(part, result.payload);  // now, while another answer may still come
  }
  lane().WriteInTurn(slice, round, result, [this, &slice, round, result, local] {
    Merge(slice, result.payload, local);
    lane().RunLast([this, &slice, round] { PrepareNext(slice, round + 1); });
  });
  return false;
}

void SlimKey::TakeWhole(const Slice& slice, const Result& result, char* local) {
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  if (!part.begun) WritePlain(slice, result, reinterpret_cast<char*>(base_.data()));
  part.begun = true;
  if (local != nullptr) WritePlain(slice, result, local);
}

// Throws Unfit for another number of values than the slice has communicated.
void SlimKey::CheckMerges(const Part& part, const Buffer& bytes) {
  Expect(bytes.size == part.together.count() * sizeof(float),
         "it has another number of values than the slice has communicated");
}

void SlimKey::Merge(const Slice& slice, const Buffer& bytes, char* local) {
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  CheckMerges(part, bytes);  // the slice may have been encoded again meanwhile, with another core
  const auto* values = reinterpret_cast<const float*>(bytes.data.get());
  float* merged = reinterpret_cast<float*>(local) + slice.offset;
  part.together.ForEach([&](size_t i) { merged[i] = *values++; });
  // Not before: a server that had another core has the slice encoded again.
  std::copy_n(merged, slice.length, base_.data() + slice.offset);
}

void SlimKey::CheckMessage(const Message& message) const {
  if (message.header.type == MessageType::kScaler) {
    Expect(values_ != nullptr && values_->shares_scaler(), "the key has no scaler");
    return Expect(!std::isnan(UnpackScaler(message.text)), "no round of the key is skipped");
  }
  const size_t bytes = message.header.whole;
  const Slice& slice = lane().slices()[message.header.slice];
  Expect(bytes == 0 || bytes == Subset::BytesOf(slice.length),
         "a core of the slice has another number of bytes");
  CheckCore(CoreMessage::Unpack(message), slice);
}

// Who may send a core says which one, once; and says it again only for an update that came with
// another. A selection that nobody can have made would take the place of those that hold.
void SlimKey::CheckCore(const CoreMessage& core, const Slice& slice) const {
  const bool here = model_->HasCore(parts_.at(slice.index)->number, core.selection);
  const uint64_t holds = model_->SelectionIn(round_);
  if (core.refused) {
    return Expect(here && core.selection == holds && lane().IsMissing(slice),
                  "no update with such a core is under way");
  }
  Expect(!here, "the core of that selection is here already");
  const bool made = core.selection <= model_->LastSelectionBy(round_) || lane().is_idle();
  Expect(core.selection >= holds && made, "no such selection can have been made");
}

void SlimKey::OnMessage(const Message& message) {
  if (message.header.type == MessageType::kScaler) return shared_.OnMessage(message);
  const CoreMessage core = CoreMessage::Unpack(message);
  const Slice& slice = lane().slices().at(message.header.slice);
  const bool asks = core.refused && core.members.size == 0 && slice.length > 0;
  if (!asks) SetCore(slice, core.selection, core.members);
  if (!core.refused || !lane().IsMissing(slice)) return;
  if (asks) {
    const auto own = model_->CoreOf(parts_.at(slice.index)->number, round_);
    Message answer = CoreMessage{core.selection, false, own->members.ToBuffer()}.Pack();
    answer.header.slice = slice.index;
    lane().SendData(slice.server, std::move(answer));
  }
  lane().SendAgain(slice);
}

// Once a right one has come the round may still wait, for other slices' cores or for a scaler.
bool SlimKey::Awaits(const Message& message) const {
  const uint64_t selection = message.header.round;
  return selection == model_->SelectionIn(round_) &&
         !model_->HasCore(parts_.at(message.header.slice)->number, selection);
}

void SlimKey::SetCore(const Slice& slice, uint64_t selection, const Buffer& members) {
  model_->SetCore(parts_.at(slice.index)->number, selection, SubsetOf(slice.length, members));
}

void SlimKey::SetBase(std::vector<float> base) {
  if (base.size() != base_.size()) {
    throw std::invalid_argument("a base of " + std::to_string(base.size()) +
                                " elements for a key of " + std::to_string(base_.size()));
  }
  base_ = std::move(base);
}

}  // namespace kvstore_ext
