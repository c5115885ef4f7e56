#include "server/aggregator.h"

#include <cstring>

namespace kvstore_ext {

void Aggregator::Note(int rank, Contribution contribution) {
  heard_.insert(rank);
  if (non_finite_) return;
  if (!deterministic_) return AddNow(contribution);
  waiting_[rank] = std::move(contribution);
  for (; next_ < static_cast<int>(waiting_.size()) && waiting_[next_]; ++next_) {
    AddNow(*waiting_[next_]);
    waiting_[next_]->values = Buffer();
  }
}

void Aggregator::AddNonFinite(int rank) {
  heard_.insert(rank);
  non_finite_ = true;
}

void Aggregator::AddNow(const Contribution& contribution) {
  if (contribution.nothing) return;
  if (add_encoded_ != nullptr) {
    AddWide(contribution);
  } else if (summed_ == 0) {
    // The first worker's values become the sum where that is possible: most slices are never
    // copied.
    const Buffer& values = contribution.values;
    sum_ = contribution.disposable || values.size == 0 ? values : values.Copy();
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
  for (const auto& contribution : waiting_) {
    if (contribution) bytes += contribution->values.size;
  }
  return bytes;
}

Buffer Aggregator::Take(double factor) {
  if (factor != 1) Multiply(factor);
  const bool rounds = wide_ && SumTypeOf(dtype_) != dtype_;
  const Buffer wide = TakeSum();
  if (!rounds) return wide;
  Buffer result = Buffer::Allocate(elements_ * SizeOf(dtype_));
  Narrow(dtype_, result.data.get(), wide.data.get(), elements_);
  return result;
}

Buffer Aggregator::TakeWide(double factor) {
  if (!wide_) WidenFirst();
  if (factor != 1) Multiply(factor);
  return TakeSum();
}

void Aggregator::Multiply(double factor) {
  if (!wide_) WidenFirst();
  kvstore_ext::Multiply(SumTypeOf(dtype_), sum_.data.get(), elements_, factor);
}

Buffer Aggregator::TakeSum() {
  Buffer result = std::move(sum_);
  sum_ = Buffer();
  wide_ = non_finite_ = false;
  summed_ = encoded_ = 0;
  heard_.clear();
  for (auto& contribution : waiting_) contribution.reset();
  next_ = 0;
  return result;
}

}  // namespace kvstore_ext
