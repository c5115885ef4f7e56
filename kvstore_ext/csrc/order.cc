#include "order.h"

#include <algorithm>

namespace kvstore_ext {

void OrderLearner::Ready(uint64_t key, uint64_t round, double pushed, double now,
                         int callers_priority) {
  std::vector<uint64_t> order;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (round < kFirstRound) known_.insert(key);
    if (done_ || round < kFirstRound || round > kLastRound) return;
    // The next iteration begins although not all keys took part in this one.
    if (seen_.count(key) != 0) order = Conclude();
    if (!done_) {
      seen_.insert(key);
      iteration_.push_back({key, pushed, now - pushed > kWaited, callers_priority});
      if (seen_ == known_) order = Conclude();
    }
  }
  if (!order.empty()) learned_(order);
}

std::vector<uint64_t> OrderLearner::Conclude() {
  const std::vector<uint64_t> order = Order();
  done_ = !order.empty();
  iteration_.clear();
  seen_.clear();
  return order;
}

std::vector<uint64_t> OrderLearner::Order() const {
  std::vector<Sighting> waited;
  std::vector<Sighting> found_ready;
  for (const Sighting& sighting : iteration_) {
    (sighting.waited ? waited : found_ready).push_back(sighting);
  }
  if (waited.size() < 2) return {};
  size_t turned = 0;
  for (size_t i = 0; i < waited.size(); ++i) {
    for (size_t j = 0; j < i; ++j) turned += waited[j].pushed > waited[i].pushed;
  }
  const double pairs = waited.size() * (waited.size() - 1) / 2.0;
  if (turned < kLeastTurned * pairs) return {};
  std::reverse(waited.begin(), waited.end());
  std::stable_sort(found_ready.begin(), found_ready.end(),
                   [](const Sighting& left, const Sighting& right) {
                     return left.callers_priority > right.callers_priority;
                   });
  std::vector<uint64_t> order;
  for (const Sighting& sighting : waited) order.push_back(sighting.key);
  for (const Sighting& sighting : found_ready) order.push_back(sighting.key);
  return order;
}

}  // namespace kvstore_ext
