#include "aggregator.h"

#include <cstring>

namespace kvstore_ext {

void Aggregator::Add(int rank, const Buffer& values, bool disposable) {
  heard_.insert(rank);
  if (!deterministic_) return AddNow(values, disposable);
  waiting_[rank] = values;
  while (summed_ < workers_ && waiting_[summed_].data != nullptr) {
    const Buffer next = std::move(waiting_[summed_]);
    waiting_[summed_] = Buffer();
    AddNow(next, disposable);
  }
}

void Aggregator::AddNow(const Buffer& values, bool disposable) {
  const bool widened = SumTypeOf(dtype_) != dtype_;
  if (summed_ == 0) {
    // The first worker's values become the sum where that is possible: most slices are never
    // copied.
    sum_ = values;
    if (!disposable && values.size > 0) {
      sum_ = Buffer::Allocate(values.size);
      std::memcpy(sum_.data.get(), values.data.get(), values.size);
    }
  } else {
    if (summed_ == 1 && widened) WidenFirst();
    AddTo(dtype_, sum_.data.get(), values.data.get(), elements_);
  }
  ++summed_;
}

void Aggregator::WidenFirst() {
  const Buffer first = sum_;
  sum_ = Buffer::Allocate(elements_ * SizeOf(SumTypeOf(dtype_)));
  Widen(dtype_, sum_.data.get(), first.data.get(), elements_);
}

std::set<int> Aggregator::missing() const {
  std::set<int> ranks;
  for (int rank = 0; rank < workers_; ++rank) {
    if (heard_.count(rank) == 0) ranks.insert(rank);
  }
  return ranks;
}

size_t Aggregator::held_bytes() const {
  size_t bytes = sum_.size;
  for (const Buffer& values : waiting_) bytes += values.size;
  return bytes;
}

Buffer Aggregator::Take() {
  const bool rounds = summed_ > 1 && SumTypeOf(dtype_) != dtype_;
  Buffer result = TakeSum();
  if (!rounds) return result;
  const Buffer wide = std::move(result);
  result = Buffer::Allocate(elements_ * SizeOf(dtype_));
  Narrow(dtype_, result.data.get(), wide.data.get(), elements_);
  return result;
}

Buffer Aggregator::TakeWide() {
  if (summed_ == 1 && SumTypeOf(dtype_) != dtype_) WidenFirst();
  return TakeSum();
}

Buffer Aggregator::TakeSum() {
  Buffer result = std::move(sum_);
  sum_ = Buffer();
  summed_ = 0;
  heard_.clear();
  return result;
}

}  // namespace kvstore_ext
