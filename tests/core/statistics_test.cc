// How long slices take, and for what the script waits: the most urgent keys, once it has come to
// where it reads them.
#include "support/statistics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace kvstore_ext {
namespace {

constexpr uint64_t kFirst = 1, kLater = 2;

TEST(Statistics, APushIsOnItsWayOnce) {
  Statistics statistics;
  statistics.Arrived(kFirst, 0);
  EXPECT_EQ(statistics.totals().wire, 0) << "nothing was pushed";
  statistics.Queued(kFirst, 0);
  statistics.Left(kFirst, 0);
  statistics.Arrived(kFirst, 0);
  const double wire = statistics.totals().wire;
  EXPECT_GT(wire, 0);
  statistics.Arrived(kFirst, 0);
  EXPECT_EQ(statistics.totals().wire, wire) << "this was asked for later";
}

TEST(Statistics, AScriptThatNeverTellsWaitsAllTheTime) {
  Statistics statistics;
  statistics.Opened(kFirst, 0, Now());
  statistics.Closed(kFirst);
  EXPECT_GT(statistics.totals().first, 0);
}

TEST(Statistics, AScriptThatHasNotComeToReadDoesNotWait) {
  Statistics statistics;
  statistics.ScriptReads();
  statistics.Opened(kFirst, 0, Now());
  EXPECT_EQ(statistics.totals().first, 0);
  statistics.Closed(kFirst);
  EXPECT_EQ(statistics.totals().first, 0);
}

TEST(Statistics, ItWaitsFromWhereItReads) {
  Statistics statistics;
  statistics.ScriptReads();
  statistics.Opened(kFirst, 0, Now());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const double from = Now();
  statistics.ScriptReads();
  EXPECT_GT(statistics.totals().first, 0);
  statistics.Closed(kFirst);
  const double waited = statistics.totals().first;
  EXPECT_GT(waited, 0);
  EXPECT_LE(waited, Now() - from);
  EXPECT_EQ(statistics.totals().first, waited);
}

TEST(Statistics, AScriptThatIsAheadWaitsFromTheGradientOn) {
  Statistics statistics;
  const double asked = Now();
  statistics.ScriptReads();  // of the next forward pass, while the gradient is still computed
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const double from = Now();
  statistics.Opened(kFirst, 0, asked);
  statistics.Closed(kFirst);
  EXPECT_GT(statistics.totals().first, 0);
  EXPECT_LE(statistics.totals().first, Now() - from);
}

TEST(Statistics, OnlyTheMostUrgentKeysCount) {
  Statistics statistics;
  statistics.Opened(kFirst, 1, Now());
  statistics.Closed(kFirst);
  const double waited = statistics.totals().first;
  statistics.Opened(kLater, 0, Now());
  statistics.Closed(kLater);
  EXPECT_EQ(statistics.totals().first, waited);
}

TEST(Statistics, AKeyThatIsNotPushedAnyMoreIsNotTheMostUrgent) {
  Statistics statistics;
  const auto step = [&statistics](const std::vector<uint64_t>& keys) {
    const double before = statistics.totals().first;
    for (const uint64_t key : keys) {
      statistics.Opened(key, key == kFirst ? 1 : 0, Now());
      statistics.Closed(key);
    }
    return statistics.totals().first > before;
  };
  EXPECT_TRUE(step({kLater, kFirst}));
  EXPECT_FALSE(step({kLater}));
  step({kLater});
  EXPECT_TRUE(step({kLater})) << "that layer is frozen";
  EXPECT_TRUE(step({kLater, kFirst}));
  EXPECT_FALSE(step({kLater})) << "and is not any more";
}

}  // namespace
}  // namespace kvstore_ext
