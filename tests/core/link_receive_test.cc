// What a link makes of what it receives, and what it answers.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "one_end.h"
#include "support/clock.h"

namespace kvstore_ext {
namespace {

TEST_F(OneEnd, PutsPartsTogetherInWhateverOrderTheyCome) {
  auto sending = std::make_shared<HeldMessages>();
  Link peer(sending, 0);
  peer.SetWindow({100, 100000});
  peer.Send(Push(1, 1050));
  peer.Send(Push(2, 950));
  std::vector<Message> parts = sending->TakeAll();
  ASSERT_EQ(parts.size(), 21U);
  std::swap(parts[0], parts[7]);
  std::swap(parts[3], parts[15]);
  int whole = 0;
  for (const Message& part : parts) {
    link_.Receive(part, [&whole](const Message& message) {
      ++whole;
      EXPECT_TRUE(IsWhole(message, message.header.key == 1 ? 1050 : 950));
      EXPECT_TRUE(message.payload_is_ours);
    });
  }
  EXPECT_EQ(whole, 2);
}

TEST_F(OneEnd, RefusesPartsThatDoNotFitEachOther) {
  EXPECT_FALSE(Receive(Part(0, 60, 100)));
  EXPECT_THROW(Receive(Part(60, 40, 200)), std::runtime_error) << "of a larger slice";
  EXPECT_THROW(Receive(Part(70, 40, 100)), std::runtime_error) << "beyond the end";
  EXPECT_THROW(Receive(Part(20, 60, 100)), std::runtime_error) << "more than is missing";
  EXPECT_TRUE(Receive(Part(60, 40, 100)));
}

TEST_F(OneEnd, GivesCreditOnceItIsWorthAMessage) {
  uint64_t received = 0, credit = 0;
  for (int i = 0; i < 300; ++i) {
    Receive(Part(0, 100, 100));
    received += 100;
    for (const Message& message : wire_->TakeAll()) {
      EXPECT_EQ(message.header.type, MessageType::kCredit);
      EXPECT_GT(message.header.credit, credit + 5000) << "so few cost as many messages again";
      credit = message.header.credit;
      EXPECT_EQ(credit, received) << "all that is owed";
    }
    EXPECT_LT(received - credit, 10000U) << "the peer must not wait for ever";
  }
}

TEST_F(OneEnd, SaysSomethingToWhoSendsItManyMessages) {
  size_t said = 0;
  for (int i = 0; i < 1000; ++i) {
    Receive(ControlMessage(MessageType::kNotice));
    said += wire_->TakeAll().size();
    EXPECT_GE(500 * (said + 1), static_cast<size_t>(i)) << "the peer waits for that";
  }
  EXPECT_LT(said, 10U);
}

TEST_F(OneEnd, LooksAtNoChecksumBeforeItKnowsTheJob) {
  link_.UseChecksums();
  Message message = Push(1, 10);
  EXPECT_FALSE(link_.HasChecksum(message)) << "anybody may have sent it";
  link_.SetJob(7);
  EXPECT_FALSE(link_.HasChecksum(message)) << "of another job";
  message.job = 7;
  EXPECT_TRUE(link_.HasChecksum(message));
}

TEST_F(OneEnd, GivesCreditAlongWithWhateverItSends) {
  Receive(Part(0, 100, 100));
  link_.SendControl(ControlMessage(MessageType::kMeet));
  Receive(Part(0, 200, 200));
  link_.Send(Push(1, 10));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 2U) << "no credit is left";
  EXPECT_EQ(sent[0].header.credit, 100U);
  EXPECT_EQ(sent[1].header.credit, 300U) << "all, and not what is new alone";
}

TEST_F(OneEnd, LetsDataThatWaitsForCreditCarryItsOwn) {
  link_.LetDataCarryCredit();
  link_.SetWindow({10000, 10000});
  Receive(Part(0, 10000, 10000));
  std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U) << "nothing waits";
  EXPECT_EQ(sent[0].header.type, MessageType::kCredit);
  link_.Send(Push(1, 10000));
  link_.Send(Push(2, 10000));
  wire_->TakeAll();
  Receive(Part(0, 10000, 10000));
  EXPECT_TRUE(wire_->TakeAll().empty());
  Message credit = ControlMessage(MessageType::kCredit);
  credit.header.credit = 10000;
  Receive(credit);
  sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.key, 2U);
  EXPECT_EQ(sent[0].header.credit, 20000U);
}

TEST_F(OneEnd, GivesBackWhatTheGateRefuses) {
  Message refused = Part(0, 20000, 20000);
  link_.TakeRefused(refused);
  std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.credit, 20000U) << "the peer has as much less of its window";
  link_.SetWindow({10000, 10000});
  link_.Send(Push(1, 10000));
  link_.Send(Push(2, 10000));
  wire_->TakeAll();
  refused = ControlMessage(MessageType::kAnswer);
  refused.header.credit = 10000;
  link_.TakeRefused(refused);
  EXPECT_EQ(TakeKeys(), Keys({2})) << "its credit holds";
  refused = Part(0, 20000, 20000);
  refused.job = 7;
  link_.TakeRefused(refused);
  EXPECT_TRUE(wire_->empty()) << "who knows no number of the job has taken nothing";
}

TEST_F(OneEnd, GivesBackWhatTheGateRefusesOfABatch) {
  Gate gate(Side::kServer,
            [](const Message& message) { Expect(message.header.key != 1, "it is not awaited"); });
  Link link(wire_, kPeer, nullptr, nullptr, nullptr, &gate);
  Batch batch;
  for (uint64_t key : {1, 2}) {
    Message push = Push(key, 100);
    push.header.whole = 100;
    batch.Add(std::move(push));
  }
  Message both = batch.Take();
  both.peer = kPeer;
  Keys whole;
  link.Receive(both, [&whole](const Message& message) { whole.push_back(message.header.key); });
  EXPECT_EQ(whole, Keys({2}));
  link.SendControl(ControlMessage(MessageType::kMeet));
  EXPECT_EQ(wire_->TakeAll().at(0).header.credit, 200U);
}

TEST_F(OneEnd, GivesNoCreditForControlMessages) {
  for (int i = 0; i < 1000; ++i) Receive(ControlMessage(MessageType::kMeet));
  link_.SendControl(ControlMessage(MessageType::kLeave));
  const std::vector<Message> sent = wire_->TakeAll();
  EXPECT_LT(sent.size(), 10U);
  for (const Message& message : sent) EXPECT_EQ(message.header.credit, 0U);
}

TEST_F(OneEnd, GivesCreditForWhatAsksForSlices) {
  for (int i = 0; i < 10; ++i) Receive(ControlMessage(MessageType::kPull));
  link_.SendControl(ControlMessage(MessageType::kLeave));
  EXPECT_EQ(wire_->TakeAll().back().header.credit, 10 * sizeof(Header));
}

TEST_F(OneEnd, AnswersPings) {
  Message ping = ControlMessage(MessageType::kPing);
  ping.header.key = 12345;
  Receive(ping);
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.type, MessageType::kPong);
  EXPECT_EQ(sent[0].header.key, 12345U);
}

TEST_F(OneEnd, KnowsWhenThePeerWasLastHeardOf) {
  const double before = Now();
  Receive(ControlMessage(MessageType::kMeet));
  EXPECT_LE(link_.signs().Silence(before), 0);
  EXPECT_GE(link_.signs().Silence(Now()), 0);
}

TEST_F(OneEnd, TellsThePeerWithEverySignOfLifeWhatElseGoesThere) {
  link_.StockLeaves(60'000'000);
  Receive(Part(0, 10000, 10000));  // to be acknowledged
  link_.StockLeaves(-60'000'000);
  link_.SendControl(ControlMessage(MessageType::kCredit));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].header.round, 60'000'000U) << "ahead of it";
  EXPECT_EQ(sent[1].header.round, 60'000'000U);
  EXPECT_EQ(sent[2].header.round, 0U);
  Receive(sent[0]);
  EXPECT_LT(link_.signs().Silence(Now()), -50);
  Receive(sent[2]);
  EXPECT_GE(link_.signs().Silence(Now()), 0);
}

TEST_F(OneEnd, CountsBytesByType) {
  link_.SetWindow({100, 1000});
  link_.Send(Push(1, 250));
  link_.SendControl(ControlMessage(MessageType::kAbort, "reason"));
  Receive(Part(0, 60, 100));
  Receive(Part(60, 40, 100));
  uint64_t left = 0;
  for (const Message& message : wire_->TakeAll()) left += BytesOf(message);
  Traffic traffic;
  traffic.sent.fill(1000);
  link_.AddTo(&traffic);
  const auto push = static_cast<size_t>(MessageType::kPush),
             abort = static_cast<size_t>(MessageType::kAbort);
  EXPECT_EQ(traffic.sent[abort], 1000 + sizeof(Header) + 6);
  EXPECT_EQ(traffic.sent[push] + traffic.sent[abort], 2000 + left);
  EXPECT_EQ(traffic.sent[static_cast<size_t>(MessageType::kMeet)], 1000U);
  EXPECT_EQ(traffic.received[push], BytesOf(Part(0, 60, 100)) + BytesOf(Part(60, 40, 100)));
  EXPECT_EQ(traffic.received[abort], 0U);
}

}  // namespace
}  // namespace kvstore_ext
