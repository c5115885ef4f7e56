#include "server/aggregator.h"

#include <cstring>

namespace kvstore_ext {

void Aggregator::Take(int rank, Contribution contribution) {
  heard_.insert(rank);
  if (non_finite_) return;
  if (!deterministic_) return AddNow(contribution);
  waiting_[rank] = std::move(contribution);
  while (summed_ < workers_ && waiting_[summed_].values.data != nullptr) {
    const Contribution next = std::move(waiting_[summed_]);
    waiting_[summed_] = Contribution();
    AddNow(next);
  }
}

void Aggregator::AddNonFinite(int rank) {
  heard_.insert(rank);
  non_finite_ = true;
}

void Aggregator::AddNow(const Contribution& contribution) {
  if (add_encoded_ != nullptr) {
    AddWide(contribution);
  } else if (summed_ == 0) {
    // The first worker's values become the sum where that is possible: most slices are never
    // copied.
    const Buffer& values = contribution.values;
    sum_ = values;
    if (!contribution.disposable && values.size > 0) {
      sum_ = Buffer::Allocate(values.size);
      std::memcpy(sum_.data.get(), values.data.get(), values.size);
    }
    wide_ = SumTypeOf(dtype_) == dtype_;
  } else {
    if (!wide_) WidenFirst();
    AddTo(dtype_, sum_.data.get(), contribution.values.data.get(), elements_);
  }
  ++summed_;
}

void Aggregator::AddWide(const Contribution& contribution) {
  if (summed_ == 0) {
    sum_ = Buffer::Allocate(elements_ * sizeof(float));
    std::memset(sum_.data.get(), 0, sum_.size);
    wide_ = true;
  }
  if (!contribution.encoded) {
    return AddTo(dtype_, sum_.data.get(), contribution.values.data.get(), elements_);
  }
  add_encoded_(reinterpret_cast<float*>(sum_.data.get()), contribution.values);
  ++encoded_;
}

void Aggregator::WidenFirst() {
  const Buffer first = sum_;
  sum_ = Buffer::Allocate(elements_ * SizeOf(SumTypeOf(dtype_)));
  Widen(dtype_, sum_.data.get(), first.data.get(), elements_);
  wide_ = true;
}

size_t Aggregator::held_bytes() const {
  size_t bytes = sum_.size;
  for (const Contribution& contribution : waiting_) bytes += contribution.values.size;
  return bytes;
}

Buffer Aggregator::Take() {
  const bool rounds = wide_ && SumTypeOf(dtype_) != dtype_;
  const Buffer wide = TakeSum();
  if (!rounds) return wide;
  Buffer result = Buffer::Allocate(elements_ * SizeOf(dtype_));
  Narrow(dtype_, result.data.get(), wide.data.get(), elements_);
  return result;
}

Buffer Aggregator::TakeWide() {
  if (!wide_) WidenFirst();
  return TakeSum();
}

Buffer Aggregator::TakeSum() {
  Buffer result = std::move(sum_);
  sum_ = Buffer();
  wide_ = non_finite_ = false;
  summed_ = encoded_ = 0;
  heard_.clear();
  for (Contribution& contribution : waiting_) contribution = Contribution();
  return result;
}

}  // namespace kvstore_ext
