// Where a worker's time and bytes go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "support/clock.h"

namespace kvstore_ext {

// Seconds add up over slices, many of which are on their way at a time.
struct Totals {
  double encode = 0;           // looking at gradients and encoding them
  double queue = 0;            // from a slice's being queued to its first part's leaving
  double wire = 0;             // from there to its result's arriving: servers' work included
  double decode = 0;           // writing results
  double first = 0;            // in which the script needed the most urgent keys: see Opened
  uint64_t plain_bytes = 0;    // of all gradients pushed, as numbers of their types
  uint64_t encoded_bytes = 0;  // of the same as they left
  uint64_t non_finite = 0;     // rounds of keys that did not count
};

// Thread-safe.
class Statistics {
 public:
  // Adds what `change` does to the totals.
  template <typename Change>
  void Count(Change change) {
    std::lock_guard<std::mutex> lock(mutex_);
    change(&totals_);
  }

  void Queued(uint64_t key, uint32_t slice) {
    std::lock_guard<std::mutex> lock(mutex_);
    since_[{key, slice}] = Now();
  }

  void Left(uint64_t key, uint32_t slice) {
    std::lock_guard<std::mutex> lock(mutex_);
    totals_.queue += Restart(key, slice);
  }

  void Arrived(uint64_t key, uint32_t slice) {
    std::lock_guard<std::mutex> lock(mutex_);
    totals_.wire += Restart(key, slice);
    since_.erase({key, slice});  // a pull's answer, which was not pushed, is not on its way since
  }

  // A key's gradient is ready, which the store was asked to push at an earlier time. While it is
  // away and no key is more urgent, the next forward pass cannot have begun; once the script has
  // come to that as well, mostly nothing is computed.
  void Opened(uint64_t key, int priority, double asked) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!opened_.insert(key).second) {  // in another step, which need not have all keys again
      highest_ = highest_opened_;
      opened_ = {key};
      highest_opened_ = priority;
    }
    highest_opened_ = std::max(highest_opened_, priority);
    highest_ = std::max(highest_, priority);
    if (priority != highest_) return;
    away_[key] = asked;
    LookWhetherItWaits();
  }

  // Its result is there.
  void Closed(uint64_t key) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (away_.erase(key) > 0) LookWhetherItWaits();
  }

  // The script has come to where it reads parameters, and needs what it has pushed before.
  void ScriptReads() {
    std::lock_guard<std::mutex> lock(mutex_);
    read_ = Now();
    LookWhetherItWaits();
  }

  // The time of keys that are still away counts already.
  Totals totals() const {
    std::lock_guard<std::mutex> lock(mutex_);
    Totals totals = totals_;
    if (waits_) totals.first += Now() - waits_since_;
    return totals;
  }

 private:
  // A script that never tells where it reads counts as if it read all the time.
  void LookWhetherItWaits() {
    const bool waits = std::any_of(away_.begin(), away_.end(), [this](const auto& key) {
      return read_ == 0 || key.second <= read_;
    });
    if (waits && !waits_) waits_since_ = Now();
    if (!waits && waits_) totals_.first += Now() - waits_since_;
    waits_ = waits;
  }

  double Restart(uint64_t key, uint32_t slice) {
    const auto found = since_.find({key, slice});
    if (found == since_.end()) return 0;  // that of a first value, or of a pull
    const double now = Now();
    const double before = found->second;
    found->second = now;
    return now - before;
  }

  mutable std::mutex mutex_;
  Totals totals_;
  std::map<std::pair<uint64_t, uint32_t>, double> since_;
  std::set<uint64_t> opened_;  // in this step
  // Priorities: of these keys, and of those of the step before as well.
  int highest_opened_ = std::numeric_limits<int>::min();
  int highest_ = std::numeric_limits<int>::min();
  std::map<uint64_t, double> away_;  // when the store was asked, of keys that have it
  double read_ = 0;                  // when the script read parameters last; 0: it never tells
  bool waits_ = false;               // for one of these keys
  double waits_since_ = 0;
};

}  // namespace kvstore_ext
