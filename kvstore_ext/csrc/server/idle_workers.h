// A server's workers that have run out of work, without which rounds go on.
#pragma once

#include <cstddef>
#include <set>

namespace kvstore_ext {

// Not thread-safe: its server's lock guards it.
class IdleWorkers {
 public:
  explicit IdleWorkers(int workers) : workers_(workers) {}

  // Throws std::runtime_error where others that are idle want sums counted otherwise.
  void Add(int worker, bool mean);

  bool none() const { return ranks_.empty(); }
  bool all() const { return working() == 0; }
  bool Has(int worker) const { return ranks_.count(worker) != 0; }
  const std::set<int>& ranks() const { return ranks_; }

  // How many take part in rounds.
  size_t working() const { return workers_ - ranks_.size(); }

  // By what a round's sum is multiplied: 1, or where the mean over those who push is wanted, what
  // makes their sum count as that of all.
  double factor() const {
    return mean_ && !none() ? static_cast<double>(workers_) / static_cast<double>(working()) : 1;
  }

  // A round is complete without those that are idle, or goes on without one of them.
  void Miss() { missed_.insert(ranks_.begin(), ranks_.end()); }
  void Miss(int worker) { missed_.insert(worker); }

  // Nobody is idle any more; returns those without which rounds have gone since somebody was.
  std::set<int> End();

 private:
  const size_t workers_;
  bool mean_ = false;
  std::set<int> ranks_;
  std::set<int> missed_;  // some round since somebody is idle
};

}  // namespace kvstore_ext
