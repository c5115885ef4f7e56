// How the order in which layers need their parameters is learned.
#include "worker/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "order_passes.h"

namespace kvstore_ext {
namespace {

constexpr int kExamples = 300;  // of random passes

// A pass that teaches the opposite.
Pass Reversed(Pass pass) {
  std::reverse(pass.begin(), pass.end());
  return PushedBackwards(pass);
}

Keys Reversed(Keys keys) {
  std::reverse(keys.begin(), keys.end());
  return keys;
}

Keys Sorted(Keys keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

Keys KeysOf(const Pass& pass) {
  Keys keys;
  for (const Sighting& seen : pass) keys.push_back(seen.key);
  return keys;
}

Pass Only(const Pass& pass, bool waited) {
  Pass only;
  for (const Sighting& seen : pass) {
    if (seen.waited == waited) only.push_back(seen);
  }
  return only;
}

Keys First(const Keys& keys, size_t count) { return {keys.begin(), keys.begin() + count}; }

TEST(OrderLearner, KeysWaitedForAreNeededInTheReverseOfTheirReadiness) {
  for (int seed = 0; seed < kExamples; ++seed) {
    SCOPED_TRACE(seed);
    Passes passes(seed);
    const Pass pass = passes.Backward();
    Watched watched;
    watched.Iterate(std::vector<Pass>(1 + passes.Below(kLessons + 2), pass));
    ASSERT_EQ(watched.learned().size(), 1U) << "it is told again only when it has changed";
    const Keys waited = KeysOf(Only(pass, true));
    EXPECT_EQ(Sorted(watched.learned()[0]), Sorted(KeysOf(pass)));
    EXPECT_EQ(First(watched.learned()[0], waited.size()), Reversed(waited));
  }
}

TEST(OrderLearner, KeysReadyAtOnceComeLastByTheCallersPriority) {
  for (int seed = 0; seed < kExamples; ++seed) {
    SCOPED_TRACE(seed);
    const Pass pass = Passes(seed).Backward();
    Watched watched;
    watched.Iterate({pass, pass});
    Pass at_once = Only(pass, false);
    std::sort(at_once.begin(), at_once.end(), [](const Sighting& one, const Sighting& other) {
      return std::make_pair(-int64_t{one.priority}, one.key) <
             std::make_pair(-int64_t{other.priority}, other.key);
    });
    ASSERT_FALSE(watched.learned().empty());
    Keys last = watched.learned()[0];
    last.erase(last.begin(), last.end() - at_once.size());
    EXPECT_EQ(last, KeysOf(at_once));
  }
}

// Two of five iterations have a pair of neighbours the wrong way round, each another pair.
TEST(OrderLearner, NeighboursThatChangePlacesNowAndThenArePutRight) {
  for (size_t first = 0; first < 19; ++first) {
    for (size_t second = 0; second < 19; ++second) {
      SCOPED_TRACE(testing::Message() << first << " and " << second);
      const Keys keys = Passes(first * 19 + second).Permutation(20);
      Pass right;
      for (const uint64_t key : keys) right.push_back({key, -1e-3 * right.size()});
      std::vector<Pass> iterations(kLessons, right);
      std::swap(iterations[0][first], iterations[0][first + 1]);
      std::swap(iterations[1][second], iterations[1][second + 1]);
      Watched watched;
      watched.Iterate(iterations);
      ASSERT_FALSE(watched.learned().empty());
      EXPECT_EQ(watched.learned().back(), Reversed(keys));
    }
  }
}

TEST(OrderLearner, TheOrderIsFinalAfterTheLessons) {
  for (int seed = 0; seed < kExamples; ++seed) {
    SCOPED_TRACE(seed);
    const Pass pass = Passes(seed).Backward();
    Watched watched;
    watched.Iterate(std::vector<Pass>(kLessons, pass));
    watched.Iterate(std::vector<Pass>(kLessons, Reversed(pass)), kFirstRound + kLessons + 1);
    EXPECT_EQ(watched.learned().size(), 1U);
  }
}

TEST(OrderLearner, AKeyThatComesAfterTheLessonsHasAllLearnedAnew) {
  const Keys late = {3, 4, 5}, all = {0, 1, 2, 3, 4, 5};
  const auto pass_of = [](const Keys& keys) {
    Pass pass;
    for (const uint64_t key : Reversed(keys)) pass.push_back({key});
    return PushedBackwards(pass);
  };
  Watched watched;
  watched.Iterate(std::vector<Pass>(kIterations + 1, pass_of(late)));
  watched.Iterate(std::vector<Pass>(kLessons + 1, pass_of(all)), kFirstRound + kIterations + 2);
  EXPECT_EQ(watched.learned(), (std::vector<Keys>{late, all}));
}

TEST(OrderLearner, InitialValuesTeachNothing) {
  for (int seed = 0; seed < kExamples; ++seed) {
    SCOPED_TRACE(seed);
    const Pass pass = Passes(seed).Backward();
    Watched watched;
    watched.Iterate({Reversed(pass), pass}, kFirstRound - 1);
    const Keys waited = KeysOf(Only(pass, true));
    ASSERT_EQ(watched.learned().size(), 1U);
    EXPECT_EQ(First(watched.learned()[0], waited.size()), Reversed(waited));
  }
}

TEST(OrderLearner, NothingIsLearnedWhereNothingWasWaitedFor) {
  for (int seed = 0; seed < kExamples; ++seed) {
    Pass pass;
    for (const uint64_t key : Passes(seed).Permutation(10)) {
      pass.push_back({key, 0, false, -static_cast<int>(key)});
    }
    Watched watched;
    watched.Iterate({pass, pass});
    EXPECT_EQ(watched.learned(), std::vector<Keys>()) << "seed " << seed;
  }
}

TEST(OrderLearner, NothingIsLearnedWhereKeysBeginAsTheyWerePushed) {
  for (int seed = 0; seed < kExamples; ++seed) {
    Pass pass;
    for (const uint64_t key : Passes(seed).Permutation(10)) {
      pass.push_back({key, 1e-3 * static_cast<double>(pass.size())});
    }
    Watched watched;
    watched.Iterate({pass, pass});
    EXPECT_EQ(watched.learned(), std::vector<Keys>())
        << "they waited for a thread, not for their computation; seed " << seed;
  }
}

TEST(OrderLearner, TwoThreadsThatBeginInTurnsTeachNothing) {
  for (size_t swapped = 0; swapped < 19; ++swapped) {
    Pass pass;
    for (uint64_t key = 0; key < 20; ++key) pass.push_back({key, static_cast<double>(key) * 1e-3});
    std::swap(pass[swapped].pushed, pass[swapped + 1].pushed);
    Watched watched;
    watched.Iterate({pass});
    EXPECT_EQ(watched.learned(), std::vector<Keys>()) << "swapped " << swapped;
  }
}

TEST(OrderLearner, WhateverTheOrderOfPushingTheOrderLearnedIsThatOfReadiness) {
  int learned = 0;
  for (int seed = 0; seed < kExamples; ++seed) {
    Pass pass;
    for (const uint64_t name : Passes(seed).Permutation(20)) {
      pass.push_back({pass.size(), static_cast<double>(name) * 1e-3});
    }
    Watched watched;
    watched.Iterate({pass});
    if (watched.learned().empty()) continue;
    ++learned;
    EXPECT_EQ(watched.learned(), std::vector<Keys>{Reversed(KeysOf(pass))}) << "seed " << seed;
  }
  EXPECT_GT(learned, kExamples / 2) << "about half of all pairs are turned";
}

TEST(OrderLearner, ALaterIterationTeachesWhereTheEarlierOnesDidNot) {
  Watched watched;
  watched.Iterate({{{0, 0, false}, {1, 0, false}}, {{1, 0.1}, {0, 0}}});
  EXPECT_EQ(watched.learned(), (std::vector<Keys>{{0, 1}}));
}

TEST(OrderLearner, AKeyThatComesLateFindsItsPlace) {
  Watched watched;
  watched.Iterate({{{2, 0.2}, {0, 0}}, {{2, 0.2}, {1, 0.1}, {0, 0}}});
  EXPECT_EQ(watched.learned(), (std::vector<Keys>{{0, 2}, {0, 1, 2}}));
}

TEST(OrderLearner, OneKeyWaitedForTeachesNothing) {
  Watched watched;
  watched.Iterate({{{0, 0, false}, {1, 0}}});
  EXPECT_EQ(watched.learned(), std::vector<Keys>());
}

TEST(OrderLearner, WhoHasTaughtNothingForLongWillTeachNothing) {
  Watched watched;
  watched.Iterate(std::vector<Pass>(kIterations, {{0, 0, false}, {1, 0, false}}));
  watched.Iterate({{{0, 0.1}, {1, 0}}}, kFirstRound + kIterations + 1);
  EXPECT_EQ(watched.learned(), std::vector<Keys>());
}

TEST(OrderLearner, ManyThreadsMaySeeKeysAtATime) {
  constexpr uint64_t kThreads = 4, kEach = 10;
  std::mutex mutex;
  std::map<uint64_t, Keys> learned;
  OrderLearner learner([&](const Keys& order, uint64_t lesson) {
    std::lock_guard<std::mutex> lock(mutex);
    EXPECT_TRUE(learned.emplace(lesson, Sorted(order)).second);
  });
  for (int round = kFirstRound; round < kFirstRound + 4; ++round) {
    std::vector<std::thread> threads;
    for (uint64_t first = 0; first < kThreads * kEach; first += kEach) {
      threads.emplace_back([&learner, first, round] {
        for (uint64_t key = first; key < first + kEach; ++key) {
          learner.Ready(key, round, round - 1e-3 * static_cast<double>(key), round + 1, 0);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  Keys every(kThreads * kEach);
  std::iota(every.begin(), every.end(), 0);
  ASSERT_FALSE(learned.empty());
  for (const auto& [lesson, order] : learned) EXPECT_EQ(order, every) << lesson;
}

}  // namespace
}  // namespace kvstore_ext
