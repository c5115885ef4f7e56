// Backward passes as the learner of the order sees them, and what it learns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "worker/order.h"

namespace kvstore_ext {

constexpr int kFirstRound = 1;    // that of the initial values is 0
constexpr int kIterations = 100;  // in which something is taught, if ever
constexpr int kLessons = 5;       // iterations that are averaged
constexpr double kReady = 1;      // seconds after an iteration began: the first gradient is ready

using Keys = std::vector<uint64_t>;

// A key whose gradient becomes ready.
struct Sighting {
  uint64_t key;
  double pushed = 0;   // seconds after the begin of the iteration
  bool waited = true;  // for its computation
  int priority = 0;    // the caller's
};

using Pass = std::vector<Sighting>;  // in the order of readiness

// A learner, and what it has learned each time.
class Watched {
 public:
  Watched() : learner_([this](const Keys& order, uint64_t lesson) { Learn(order, lesson); }) {}

  // The passes given, and the begin of one more, which ends the last of them.
  void Iterate(const std::vector<Pass>& passes, int first = kFirstRound) {
    for (const Pass& pass : passes) Observe(pass, first++);
    Observe({passes.back().front()}, first);
  }

  const std::vector<Keys>& learned() const { return learned_; }

 private:
  void Learn(const Keys& order, uint64_t lesson) {
    EXPECT_GT(lesson, lesson_);
    lesson_ = lesson;
    learned_.push_back(order);
  }

  void Observe(const Pass& pass, int number) {
    for (size_t i = 0; i < pass.size(); ++i) {
      const Sighting& seen = pass[i];
      const double ready = seen.waited ? kReady + static_cast<double>(i) : seen.pushed;
      const double begin = 10000.0 * number;
      learner_.Ready(seen.key, number, begin + seen.pushed, begin + ready, seen.priority);
    }
  }

  std::vector<Keys> learned_;
  uint64_t lesson_ = 0;
  OrderLearner learner_;
};

// The pass whose keys are pushed in the opposite order.
inline Pass PushedBackwards(Pass pass) {
  for (size_t i = 0; i < pass.size(); ++i) pass[i].pushed = -1e-3 * static_cast<double>(i);
  return pass;
}

// Random passes and orders, the same for a seed.
class Passes {
 public:
  explicit Passes(unsigned seed) : random_(seed) {}

  // Distinct keys, at least two of them waited for, and those pushed in the opposite order.
  Pass Backward() {
    Pass pass = {{0}, {std::numeric_limits<uint64_t>::max()}};
    while (Below(20) > 0 && pass.size() < 30) pass.push_back({random_()});
    const size_t at_once[] = {0, pass.size() / 2, pass.size()};
    const size_t first_waited = std::min(at_once[Below(3)], pass.size() - 2);
    for (size_t i = 0; i < pass.size(); ++i) {
      pass[i].waited = i >= first_waited;
      pass[i].priority = Priority();
    }
    Shuffle(&pass);
    return PushedBackwards(pass);
  }

  // 0 to count - 1.
  Keys Permutation(size_t count) {
    Keys keys(count);
    std::iota(keys.begin(), keys.end(), 0);
    Shuffle(&keys);
    return keys;
  }

  size_t Below(size_t bound) { return random_() % bound; }

 private:
  template <typename Range>
  void Shuffle(Range* range) {
    std::shuffle(range->begin(), range->end(), random_);
  }

  // Some are equal, some extreme.
  int Priority() {
    using Limits = std::numeric_limits<int>;
    const int all[] = {0, 0, 1, -1, Limits::min(), Limits::max(), static_cast<int>(random_() / 2)};
    return all[Below(7)];
  }

  std::mt19937_64 random_;
};

}  // namespace kvstore_ext
