#include "order.h"

#include <algorithm>

namespace kvstore_ext {

void OrderLearner::Ready(uint64_t key, uint64_t round, double seconds, int callers_priority) {
  std::vector<uint64_t> order;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (done_ || round < kFirstRound) return;
    if (!seen_.insert(key).second) {  // the next iteration begins: what did this one teach?
      order = Order();
      done_ = !order.empty();
      iteration_.clear();
      seen_ = {key};
    }
    iteration_.push_back({key, seconds > kWaited, callers_priority});
  }
  if (!order.empty()) learned_(order);
}

std::vector<uint64_t> OrderLearner::Order() const {
  std::vector<Sighting> waited;
  std::vector<Sighting> found_ready;
  for (const Sighting& sighting : iteration_) {
    (sighting.waited ? waited : found_ready).push_back(sighting);
  }
  if (waited.size() < 2) return {};
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
