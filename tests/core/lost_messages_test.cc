// What is lost, and what is only late. The tests make up the time.
#include "transport/lost_messages.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kvstore_ext {
namespace {

constexpr double kLimit = 30;

// Has a sign of life a second tell for so long that so many messages have left, and a watchdog look
// behind each; returns how many it has found lost in the end.
int TellFor(LostMessages* messages, uint32_t left, double begin, double seconds) {
  int lost = 0;
  for (double time = begin; time <= begin + seconds; ++time) {
    messages->Told(left, time);
    lost = messages->Lost(time, kLimit);
  }
  return lost;
}

TEST(LostMessages, WhatStaysMissingWhileSignsComeIsLost) {
  LostMessages messages;
  for (int i = 0; i < 5; ++i) messages.Came();
  EXPECT_EQ(TellFor(&messages, 7, 100, kLimit), 0) << "not longer than that";
  EXPECT_EQ(TellFor(&messages, 7, 131, 0), 2);
}

TEST(LostMessages, NothingIsLostWhereAllHasCome) {
  LostMessages messages;
  EXPECT_EQ(TellFor(&messages, 0, 100, 60), 0);
  messages.Came();
  EXPECT_EQ(TellFor(&messages, 1, 161, 60), 0);
  messages.Came();  // which the signs to come have not counted
  EXPECT_EQ(TellFor(&messages, 1, 222, 60), 0);
}

TEST(LostMessages, AnyThatComesHasTheWaitBeginAgain) {
  LostMessages messages;
  EXPECT_EQ(TellFor(&messages, 2, 100, 40), 2);
  messages.Came();
  EXPECT_EQ(messages.Lost(141, kLimit), 0);
  EXPECT_EQ(TellFor(&messages, 2, 142, 29), 0);
  EXPECT_EQ(TellFor(&messages, 2, 172, 3), 1);
}

TEST(LostMessages, WhoWasBusyIsNotMissingWhatIsNextInItsInbox) {
  LostMessages messages;
  for (int i = 0; i < 60; ++i) messages.Told(1, 100 + i * 1e-3);
  for (double time = 101; time < 160; ++time) EXPECT_EQ(messages.Lost(time, kLimit), 0);
  for (int i = 0; i < 60; ++i) messages.Told(1, 160 + i * 1e-6);
  EXPECT_EQ(messages.Lost(160.001, kLimit), 0) << "that is one more look";
  messages.Came();
  EXPECT_EQ(messages.Lost(161, kLimit), 0);
}

TEST(LostMessages, WhoWasStoppedHimselfHasNotLostWhatIsNext) {
  LostMessages messages;
  for (int i = 0; i < 60; ++i) messages.Told(1, 100 + i * 1e-3);  // as in a busy job
  EXPECT_EQ(messages.Lost(100.1, kLimit), 0);
  messages.Told(1, 200);
  EXPECT_EQ(messages.Lost(200, kLimit), 0);
}

TEST(LostMessages, NumbersGoOnBeyondTheLargestOne) {
  LostMessages messages;
  for (int i = 0; i < 3; ++i) messages.Came();
  EXPECT_EQ(TellFor(&messages, UINT32_MAX, 100, 60), 0) << "of before";
  EXPECT_EQ(TellFor(&messages, 5, 161, 60), 2);
}

TEST(LostMessages, WhereNobodyCouldCountNoneIsLost) {
  LostMessages messages;
  messages.GiveUp();
  EXPECT_EQ(TellFor(&messages, 9, 100, 60), 0);
}

}  // namespace
}  // namespace kvstore_ext
