// What is counted, and told of now and then.
#include "security/tally.h"

#include <gtest/gtest.h>

namespace kvstore_ext {
namespace {

TEST(Tally, TellsOfTheFirstAndThenWaits) {
  Tally tally(1e6);
  EXPECT_EQ(tally.Add(), 1U);
  EXPECT_EQ(tally.Add(), 0U);
  EXPECT_EQ(tally.Add(), 0U);
  EXPECT_EQ(tally.total(), 3U);
}

TEST(Tally, TellsOfThoseSinceTheLastTime) {
  Tally tally(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tally.Add(), 1U);
  EXPECT_EQ(tally.total(), 3U);
}

}  // namespace
}  // namespace kvstore_ext
