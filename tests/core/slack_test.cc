// What share of its time training waits, by when gradients become ready.
#include "worker/slack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace kvstore_ext {
namespace {

constexpr int kKeys = 5;
constexpr double kBackward = 2;  // seconds, and a forward pass takes one

class Trained : public testing::Test {
 protected:
  // An iteration of so many seconds; what its first gradient tells of those before.
  std::optional<double> Iterate(double seconds) {
    const std::optional<double> told = slack_.Ready(0, now_);
    for (int key = 1; key < kKeys; ++key) {
      EXPECT_FALSE(slack_.Ready(key, now_ + kBackward * key / (kKeys - 1)));
    }
    now_ += seconds;
    return told;
  }

  Slack slack_;
  double now_ = 1000;
};

TEST_F(Trained, IsNotKnownBeforeTheSecondIteration) {
  EXPECT_FALSE(Iterate(10));
  EXPECT_TRUE(Iterate(10));
}

TEST_F(Trained, WaitsInWhatNeitherPassTakes) {
  Iterate(10);
  EXPECT_DOUBLE_EQ(*Iterate(10), 0.7);
}

TEST_F(Trained, DoesNotWaitWhereItsForwardPassIsShort) {
  Iterate(2.5);
  EXPECT_EQ(*Iterate(10), 0);
}

TEST_F(Trained, WaitsInTheWholeIterationWhereAllGradientsComeAtOnce) {
  for (int iteration = 0; iteration < 3; ++iteration) {
    const std::optional<double> waits = slack_.Ready(0, now_);
    for (int key = 1; key < kKeys; ++key) EXPECT_FALSE(slack_.Ready(key, now_));
    EXPECT_EQ(waits.value_or(1), 1);
    EXPECT_EQ(waits.has_value(), iteration > 0);
    now_ += 10;
  }
}

TEST_F(Trained, BeginsAnIterationWithAnyKeyThatComesAgain) {
  Iterate(10);
  EXPECT_DOUBLE_EQ(*slack_.Ready(3, now_), 0.7);
  EXPECT_FALSE(slack_.Ready(0, now_ + 1));
  EXPECT_TRUE(slack_.Ready(3, now_ + 2));
}

TEST_F(Trained, MayBeToldByManyThreads) {
  constexpr int kThreads = 4, kRounds = 1000;
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread, &told] {
      for (int round = 0; round < kRounds; ++round) {
        const std::optional<double> waits = slack_.Ready(thread, round);
        if (!waits) continue;
        ++told;
        EXPECT_GE(*waits, 0);
        EXPECT_LE(*waits, 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(told, kRounds - 1);
}

}  // namespace
}  // namespace kvstore_ext
