// Whose silence is excused, and for how long. The tests make up the time.
#include "transport/signs_of_life.h"

#include <gtest/gtest.h>

namespace kvstore_ext {
namespace {

constexpr int64_t kMegabyte = 1'000'000;  // takes a second

TEST(SignsOfLife, SilenceBeginsAgainWithEverythingThatIsHeard) {
  SignsOfLife signs(100);
  EXPECT_EQ(signs.Silence(130), 30);
  signs.Heard(140);
  EXPECT_EQ(signs.Silence(150), 10);
  EXPECT_EQ(signs.Silence(150, 145), 5) << "for who was stopped until then";
}

TEST(SignsOfLife, BytesThatComeExcuseSilenceUntilThePeerIsHeardOfBehindThem) {
  SignsOfLife signs(100);
  signs.AwaitBytes(60 * kMegabyte, 101);
  EXPECT_EQ(signs.Silence(180), 20);
  signs.Heard(190);
  EXPECT_EQ(signs.Silence(270), 20) << "a sign from before them";
  signs.AwaitBytes(-60 * kMegabyte, 280);
  EXPECT_EQ(signs.Silence(280), 30) << "they have arrived, and the next sign is right behind";
  signs.Heard(281);
  EXPECT_EQ(signs.Silence(291), 10);
}

TEST(SignsOfLife, WhoIsDeadIsMissedHoweverOftenBytesAreToCome) {
  SignsOfLife asked(100), answered(100);
  for (int second = 101; second <= 1000; ++second) {
    asked.AwaitBytes(kMegabyte, second);
    answered.AwaitBytes(kMegabyte, second);
    answered.AwaitBytes(-kMegabyte, second);
  }
  EXPECT_GE(asked.Silence(1000), 895) << "a sign of life would have come before the later ones";
  EXPECT_EQ(answered.Silence(1000), 899);
}

TEST(SignsOfLife, WhatThePeerAnnouncesExcusesItUntilItSaysOtherwise) {
  SignsOfLife signs(100);
  signs.Announced(60 * kMegabyte, 1);
  EXPECT_EQ(signs.Silence(180), 20);
  signs.Heard(190);
  EXPECT_EQ(signs.Silence(270), 20);
  signs.Announced(0, 2);
  EXPECT_EQ(signs.Silence(270), 80);
}

TEST(SignsOfLife, AnAnnouncementThatComesLateSaysNothing) {
  SignsOfLife signs(100);
  signs.Announced(60 * kMegabyte, 2);
  signs.Announced(0, 1);
  EXPECT_EQ(signs.Silence(180), 20);
  signs.Announced(0, 3);
  EXPECT_EQ(signs.Silence(180), 80);
}

TEST(SignsOfLife, AnnouncementsAreNumberedOnBeyondTheLargestNumber) {
  SignsOfLife signs(100);
  const auto last = static_cast<uint32_t>(-1);
  signs.Announced(30 * kMegabyte, last / 2);
  signs.Announced(30 * kMegabyte, last - 1);
  signs.Announced(60 * kMegabyte, 2);
  EXPECT_EQ(signs.Silence(180), 20);
}

}  // namespace
}  // namespace kvstore_ext
