#include "server/idle_workers.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "support/ranks.h"

namespace kvstore_ext {

void IdleWorkers::Add(int worker, bool mean) {
  if (!none() && mean != mean_) {
    throw std::runtime_error("worker " + std::to_string(worker) +
                             " joined with mean=" + (mean ? "True" : "False") + ", " +
                             Who("worker", ranks_) + " with the other: all call store.join alike");
  }
  mean_ = mean;
  ranks_.insert(worker);
}

std::set<int> IdleWorkers::End() {
  ranks_.clear();
  return std::exchange(missed_, {});
}

}  // namespace kvstore_ext
