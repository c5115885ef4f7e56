#include "slim_dp/core_selection.h"

#include <cmath>

#include "support/float16.h"

namespace kvstore_ext {
namespace {

constexpr int kHalfBits = 16;

size_t SizeOf(const Buffer& values) { return values.size / sizeof(float); }

float* ValuesOf(const Buffer& values) { return reinterpret_cast<float*>(values.data.get()); }

double SumOf(const Buffer& values) {
  double sum = 0;
  for (size_t i = 0; i < SizeOf(values); ++i) sum += std::fabs(ValuesOf(values)[i]);
  return sum;
}

// Calls found(i, bits) for all elements of a weighed snapshot.
template <typename Found>
void ForEachBits(const SlimSlice::Snapshot& snapshot, Found found) {
  const float* weights = ValuesOf(snapshot.parameters);
  const size_t elements = SizeOf(snapshot.parameters);
  for (size_t i = 0; i < elements; ++i) {
    found(i, static_cast<uint32_t>(MagnitudeBits(weights[i])));
  }
}

}  // namespace

std::map<SliceName, CoreSelection::Sums> CoreSelection::SumsOfSlices() const {
  std::map<SliceName, Sums> sums;
  for (const auto& entry : snapshots_) {
    sums[entry.first] = {SumOf(entry.second->parameters), SumOf(entry.second->update)};
  }
  return sums;
}

void CoreSelection::Weigh(float c) {
  for (auto& entry : snapshots_) {
    SlimSlice::Snapshot& snapshot = *entry.second;
    float* weights = ValuesOf(snapshot.parameters);
    const float* update = ValuesOf(snapshot.update);
    const size_t elements = SizeOf(snapshot.parameters);
    for (size_t i = 0; i < elements; ++i) {
      weights[i] = std::fabs(weights[i]) + (update == nullptr ? 0 : c * std::fabs(update[i]));
    }
    snapshot.update = Buffer();
  }
}

std::vector<uint64_t> CoreSelection::CountUpper() const {
  std::vector<uint64_t> counts(kHalves);
  for (const auto& entry : snapshots_) {
    ForEachBits(*entry.second, [&](size_t, uint32_t bits) { ++counts[bits >> kHalfBits]; });
  }
  return counts;
}

std::vector<uint64_t> CoreSelection::CountLower(uint32_t upper) const {
  std::vector<uint64_t> counts(kHalves);
  for (const auto& entry : snapshots_) {
    ForEachBits(*entry.second, [&](size_t, uint32_t bits) {
      if (bits >> kHalfBits == upper) ++counts[bits & (kHalves - 1)];
    });
  }
  return counts;
}

std::map<SliceName, uint64_t> CoreSelection::CountEqual(uint32_t bits) const {
  std::map<SliceName, uint64_t> counts;
  for (const auto& entry : snapshots_) {
    uint64_t& count = counts[entry.first];
    ForEachBits(*entry.second, [&](size_t, uint32_t own) { count += own == bits ? 1 : 0; });
  }
  return counts;
}

std::map<SliceName, Subset> CoreSelection::Choose(
    uint32_t bits, const std::map<SliceName, uint64_t>& equal) const {
  std::map<SliceName, Subset> chosen;
  for (const auto& entry : snapshots_) {
    const auto found = equal.find(entry.first);
    uint64_t left = found == equal.end() ? 0 : found->second;
    Subset members(SizeOf(entry.second->parameters));
    ForEachBits(*entry.second, [&](size_t i, uint32_t own) {
      if (own < bits || (own == bits && left == 0)) return;
      left -= own == bits ? 1 : 0;
      members.Insert(i);
    });
    chosen.emplace(entry.first, std::move(members));
  }
  return chosen;
}

}  // namespace kvstore_ext
