#include "slim_dp/core_selection.h"

#include <mutex>
#include <stdexcept>
#include <utility>

namespace kvstore_ext {
namespace {

constexpr int kHalfBits = 16;

size_t SizeOf(const Buffer& values) { return values.size / sizeof(float); }

const float* ValuesOf(const Buffer& values) {
  return reinterpret_cast<const float*>(values.data.get());
}

// Nothing for the initial parameters.
const float* UpdateOf(const SlimSlice::Snapshot& snapshot) {
  return snapshot.update.size == 0 ? nullptr : ValuesOf(snapshot.update);
}

}  // namespace

std::map<SliceName, CoreSelection::Sums> CoreSelection::SumsOfSlices() const {
  std::map<SliceName, Sums> sums;
  for (const auto& entry : snapshots_) {
    sums[entry.first] = {entry.second->parameters_sum, entry.second->update_sum};
  }
  return sums;
}

std::vector<int32_t> CoreSelection::Sample(float c, size_t step) {
  if (step == 0) throw std::invalid_argument("a sample of every 0th element");
  std::lock_guard<std::mutex> lock(mutex_);
  c_ = c;
  std::vector<int32_t> sample;
  size_t next = 0;
  for (const auto& entry : snapshots_) {
    const SlimSlice::Snapshot& snapshot = *entry.second;
    next = AddSample(ValuesOf(snapshot.parameters), UpdateOf(snapshot), c,
                     SizeOf(snapshot.parameters), next, step, &sample);
  }
  return sample;
}

uint64_t CoreSelection::Divide(const Bracket& bracket) {
  std::lock_guard<std::mutex> lock(mutex_);
  divided_.clear();
  uint64_t above = 0;
  for (const auto& entry : snapshots_) {
    const SlimSlice::Snapshot& snapshot = *entry.second;
    Divided divided = kvstore_ext::Divide(ValuesOf(snapshot.parameters), UpdateOf(snapshot), c_,
                                          SizeOf(snapshot.parameters), bracket);
    above += divided.above.count();
    divided_.emplace(entry.first, std::move(divided));
  }
  return above;
}

std::vector<uint64_t> CoreSelection::CountUpper() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> counts(kHalves);
  for (const auto& entry : divided_) {
    for (const int32_t bits : entry.second.bits) ++counts[bits >> kHalfBits];
  }
  return counts;
}

std::vector<uint64_t> CoreSelection::CountLower(uint32_t upper) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> counts(kHalves);
  for (const auto& entry : divided_) {
    for (const int32_t bits : entry.second.bits) {
      if (static_cast<uint32_t>(bits) >> kHalfBits == upper) ++counts[bits & (kHalves - 1)];
    }
  }
  return counts;
}

std::map<SliceName, uint64_t> CoreSelection::CountEqual(uint32_t bits) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<SliceName, uint64_t> counts;
  for (const auto& entry : divided_) {
    uint64_t& count = counts[entry.first];
    for (const int32_t own : entry.second.bits) count += static_cast<uint32_t>(own) == bits ? 1 : 0;
  }
  return counts;
}

std::map<SliceName, Subset> CoreSelection::Choose(
    uint32_t bits, const std::map<SliceName, uint64_t>& equal) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<SliceName, Subset> chosen;
  for (const auto& entry : divided_) {
    const Divided& divided = entry.second;
    const auto found = equal.find(entry.first);
    uint64_t left = found == equal.end() ? 0 : found->second;
    Subset members = divided.above;
    for (size_t i = 0; i < divided.within.size(); ++i) {
      const auto own = static_cast<uint32_t>(divided.bits[i]);
      if (own < bits || (own == bits && left == 0)) continue;
      left -= own == bits ? 1 : 0;
      members.Insert(divided.within[i]);
    }
    chosen.emplace(entry.first, std::move(members));
  }
  return chosen;
}

}  // namespace kvstore_ext
