#include "worker/order.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace kvstore_ext {

void OrderLearner::Ready(uint64_t key, uint64_t round, double pushed, double now,
                         int callers_priority) {
  std::vector<uint64_t> order;
  uint64_t lesson = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (round < kFirstRound) return;
    if (known_.insert(key).second && !Watches()) BeginAnew();
    // A key that comes again begins the next iteration; some keys may take part in a few only.
    if (!seen_.insert(key).second) {
      if (Watches()) order = Conclude();
      lesson = lessons_;
      seen_ = {key};
    }
    if (Watches()) iteration_.push_back({key, pushed, now - pushed > kWaited, callers_priority});
  }
  if (!order.empty()) learned_(order, lesson);
}

// What others' places were averaged from did not have the key.
void OrderLearner::BeginAnew() {
  lessons_left_ = kLessons;
  iterations_left_ = kIterations;
  places_.clear();
  partial_ = true;
}

std::vector<uint64_t> OrderLearner::Conclude() {
  --iterations_left_;
  const bool taught = !std::exchange(partial_, false) && Learn();
  iteration_.clear();
  if (!taught) return {};
  ++lessons_;
  --lessons_left_;
  const std::vector<uint64_t> before = std::exchange(order_, Order());
  return order_ == before ? std::vector<uint64_t>() : order_;
}

bool OrderLearner::Learn() {
  std::vector<const Sighting*> waited;
  for (const Sighting& sighting : iteration_) {
    if (sighting.waited) waited.push_back(&sighting);
  }
  if (waited.size() < 2) return false;
  size_t turned = 0;
  for (size_t i = 0; i < waited.size(); ++i) {
    for (size_t j = 0; j < i; ++j) turned += waited[j]->pushed > waited[i]->pushed;
  }
  const double pairs = waited.size() * (waited.size() - 1) / 2.0;
  if (turned < kLeastTurned * pairs) return false;
  const double all = iteration_.size();
  double place = waited.size();
  const double middle_of_others = (waited.size() + 1 + all) / 2;
  for (const Sighting& sighting : iteration_) {
    Places& places = places_[sighting.key];
    places.sum += (sighting.waited ? place-- : middle_of_others) / all;
    ++places.iterations;
    places.callers_priority = sighting.callers_priority;
  }
  return true;
}

std::vector<uint64_t> OrderLearner::Order() const {
  std::vector<std::tuple<double, int64_t, uint64_t>> ranked;
  for (const auto& [key, places] : places_) {
    ranked.emplace_back(places.sum / places.iterations, -int64_t{places.callers_priority}, key);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint64_t> order;
  for (const auto& entry : ranked) order.push_back(std::get<2>(entry));
  return order;
}

}  // namespace kvstore_ext
