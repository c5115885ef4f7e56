#include "slim_key.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "wire.h"

namespace kvstore_ext {
namespace {

// Slices are to stay of some use to priorities however few elements travel: those of a full push,
// and those pulled, travel whole.
constexpr double kLeastBytes = 0.4;

}  // namespace

SlimKey::SlimKey(uint64_t key, const SliceDeclaration& declaration, int workers,
                 std::shared_ptr<SlimModel> model)
    : key_(key),
      elements_(declaration.elements),
      model_(std::move(model)),
      values_(model_->options().values.empty() ? nullptr
                                               : MakeCodec(model_->options().values, workers)),
      base_(elements_) {}

void SlimKey::Cut(const std::vector<Slice>& slices) {
  for (const Slice& slice : slices) {
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->place = model_->Add(slice.length);
  }
}

bool SlimKey::shares_scaler() const { return values_ != nullptr && values_->shares_scaler(); }

double SlimKey::bytes_per_element() const {
  const SlimOptions& options = model_->options();
  double bytes = sizeof(float) * options.share;  // on the way back, where values are always floats
  if (options.sends_indices) bytes += sizeof(uint32_t) * (options.share - options.core_share);
  return std::max(bytes, kLeastBytes);
}

size_t SlimKey::alignment() const { return Subset::kWordBits; }

float SlimKey::Prepare(const char* local, uint64_t) {
  local_ = reinterpret_cast<const float*>(local);
  if (values_ == nullptr) return 0;
  std::vector<float> update(elements_);
  for (size_t i = 0; i < elements_; ++i) update[i] = local_[i] - base_[i];
  return values_->Scaler(update.data(), elements_);
}

void SlimKey::PrepareNext(const Slice& slice, uint64_t round) {
  if (!model_->Ready(round)) return;
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  if (part.round < model_->RoundOf(round)) DrawOnce(&part, slice, round);
}

Buffer SlimKey::TakeAll(const Slice&) { throw std::logic_error("slim_dp cannot send a key whole"); }

void SlimKey::DrawOnce(Part* part, const Slice& slice, uint64_t round) {
  auto core = model_->CoreOf(part->place, round);
  const uint64_t total = model_->RoundOf(round);
  if (part->round == total && part->core == core) return;
  const uint64_t stream =
      ExplorerStream(model_->options(), model_->rank(), key_, total, slice.offset);
  part->together = Explore(core->members, model_->ExplorersOf(part->place, round), stream);
  part->core = std::move(core);
  part->round = total;
}

Buffer SlimKey::Encode(const Slice& slice, uint64_t round, float scaler) {
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  DrawOnce(&part, slice, round);
  const UpdateHeader header = HeaderOf(part);
  const bool sends_indices = model_->options().sends_indices;
  const Subset all = header.full != 0 ? Subset(slice.length, true) : Subset();
  const Subset& members = header.full != 0 ? all : part.together;
  Buffer encoded;
  if (values_ != nullptr) {
    std::vector<float> values(members.count());
    TakeOut(members, slice, values.data());
    const Draws draws(values_->seed(), header.rank, key_, part.round);
    encoded = values_->Encode(values.data(), values.size(), scaler, draws.From(slice.offset));
  }
  const size_t value_bytes = values_ != nullptr ? encoded.size : members.count() * sizeof(float);
  const size_t index_bytes = sends_indices ? header.explorers * sizeof(uint32_t) : 0;
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
  if (sends_indices) {
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

void SlimKey::Decode(const Slice& slice, const Buffer& bytes, char* local) {
  Part& part = *parts_.at(slice.index);
  std::lock_guard<std::mutex> lock(part.mutex);
  CheckSize("slim_dp", bytes, slice.length, part.together.count() * sizeof(float));
  const auto* values = reinterpret_cast<const float*>(bytes.data.get());
  auto* merged = reinterpret_cast<float*>(local);
  part.together.ForEach([&](size_t i) { merged[i] = *values++; });
  // Not before: a server that had another core has the slice encoded again.
  std::copy_n(merged, slice.length, base_.data() + slice.offset);
}

void SlimKey::Begin(const Slice& slice, const Buffer& values) {
  CheckSize("plain", values, slice.length, slice.length * sizeof(float));
  std::copy_n(reinterpret_cast<const float*>(values.data.get()), slice.length,
              base_.data() + slice.offset);
}

void SlimKey::SetCore(const Slice& slice, uint64_t selection, const Buffer& members) {
  model_->SetCore(parts_.at(slice.index)->place, selection, Subset(slice.length, members));
}

std::shared_ptr<const Core> SlimKey::CoreOf(const Slice& slice, uint64_t round) const {
  return model_->CoreOf(parts_.at(slice.index)->place, round);
}

void SlimKey::SetBase(std::vector<float> base) {
  if (base.size() != elements_) {
    throw std::invalid_argument("a base of " + std::to_string(base.size()) +
                                " elements for a key of " + std::to_string(elements_));
  }
  base_ = std::move(base);
}

}  // namespace kvstore_ext
