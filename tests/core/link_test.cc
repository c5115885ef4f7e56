// One end of a link: what it sends when, and what it makes of what it receives.
#include "transport/link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "held_messages.h"
#include "support/clock.h"
#include "support/failure.h"

namespace kvstore_ext {
namespace {

constexpr int kPeer = 3;
constexpr MessageType kPushType = MessageType::kPush;

class OneEnd : public testing::Test {
 protected:
  // Takes what has left: the keys of messages with data, in order.
  std::vector<uint64_t> TakeKeys() {
    std::vector<uint64_t> keys;
    for (const Message& message : wire_->TakeAll()) {
      if (message.header.type == kPushType) keys.push_back(message.header.key);
    }
    return keys;
  }

  bool Receive(Message message) { return link_.Receive(&message); }

  const std::shared_ptr<HeldMessages> wire_ = std::make_shared<HeldMessages>();
  Link link_{wire_, kPeer};
};

using Keys = std::vector<uint64_t>;

TEST_F(OneEnd, SendsByPriorityWithinTheWindow) {
  link_.SetWindow({100, 200});
  link_.Send(Push(1, 100, -1));
  link_.Send(Push(2, 100, -2));
  link_.Send(Push(3, 100, -3));
  link_.Send(Push(4, 100, 5));
  link_.Send(Push(5, 100, -3));
  EXPECT_EQ(TakeKeys(), (Keys{1, 2})) << "fill the window";
  Receive(Credit(100));
  EXPECT_EQ(TakeKeys(), Keys{4}) << "is the most urgent";
  Receive(Credit(200));
  EXPECT_EQ(TakeKeys(), (Keys{3, 5})) << "are as urgent, in the order in which they came";
}

TEST_F(OneEnd, AddressesThePeer) {
  link_.Send(Push(1, 10));
  link_.SendControl(ControlMessage(MessageType::kPull));
  for (const Message& message : wire_->TakeAll()) EXPECT_EQ(message.peer, kPeer);
}

TEST_F(OneEnd, SlicesOfFewBytesOrNoneAreBoundedToo) {
  link_.SetWindow({100, 200});
  for (uint64_t key = 0; key < 100; ++key) link_.Send(Push(key, key % 3));
  EXPECT_LT(TakeKeys().size(), 10U);
}

TEST_F(OneEnd, SendsControlMessagesAtOnceThoughTheWindowIsFull) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 100));
  link_.Send(Push(2, 100));
  link_.SendControl(ControlMessage(MessageType::kAbort, "reason"));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].header.type, MessageType::kAbort);
  EXPECT_EQ(sent[1].text, "reason");
}

TEST_F(OneEnd, SendsTheMoreUrgentBetweenTheParts) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 300, 0));
  link_.Send(Push(2, 100, 1));
  EXPECT_EQ(TakeKeys(), Keys{1});
  Receive(Credit(100));
  EXPECT_EQ(TakeKeys(), Keys{2});
  Receive(Credit(100));
  EXPECT_EQ(TakeKeys(), Keys{1});
  Receive(Credit(100));
  EXPECT_EQ(TakeKeys(), Keys{1});
}

TEST_F(OneEnd, PartsOfWhatIsQueuedStayAsTheyAre) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 300));
  link_.SetWindow({1000, 1000});
  link_.Send(Push(2, 300));
  EXPECT_EQ(TakeKeys(), (Keys{1, 1, 1, 2})) << "and a wider window lets them go";
}

TEST_F(OneEnd, ANarrowerWindowHoldsBack) {
  link_.SetWindow({100, 1000});
  link_.Send(Push(1, 100));
  link_.SetWindow({100, 100});
  link_.Send(Push(2, 100));
  EXPECT_EQ(TakeKeys(), Keys{1});
}

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
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!link_.Receive(&parts[i])) continue;
    ++whole;
    EXPECT_TRUE(IsWhole(parts[i], parts[i].header.key == 1 ? 1050 : 950));
    EXPECT_TRUE(parts[i].payload_is_ours);
  }
  EXPECT_EQ(whole, 2);
}

Message Part(size_t offset, size_t bytes, size_t whole) {
  Message part = Push(1, bytes);
  part.header.offset = static_cast<uint32_t>(offset);
  part.header.whole = static_cast<uint32_t>(whole);
  return part;
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
  for (int i = 0; i < 100; ++i) {
    Receive(Part(0, 100, 100));
    received += 100;
    link_.Acknowledge();
    for (const Message& message : wire_->TakeAll()) {
      EXPECT_EQ(message.header.type, MessageType::kCredit);
      EXPECT_GT(message.header.credit, 1000U) << "so few cost as many messages again";
      credit += message.header.credit;
      EXPECT_EQ(credit, received) << "all that is owed";
    }
    EXPECT_LT(received - credit, 5000U) << "the peer must not wait for ever";
  }
}

TEST_F(OneEnd, GivesCreditAlongWithWhateverItSends) {
  Receive(Part(0, 100, 100));
  link_.SendControl(ControlMessage(MessageType::kPull));
  Receive(Part(0, 200, 200));
  link_.Send(Push(1, 10));
  link_.Acknowledge();
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 2U) << "no credit is left";
  EXPECT_EQ(sent[0].header.credit, 100U);
  EXPECT_EQ(sent[1].header.credit, 200U);
}

TEST_F(OneEnd, GivesNoCreditForControlMessages) {
  for (int i = 0; i < 1000; ++i) Receive(ControlMessage(MessageType::kPull));
  link_.SendControl(ControlMessage(MessageType::kLeave));
  link_.Acknowledge();
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.credit, 0U);
}

TEST_F(OneEnd, TellsOfAMessageJustBeforeItsFirstPartLeaves) {
  std::vector<std::pair<uint64_t, size_t>> told;  // key, and how many messages had left before
  size_t left = 0;
  Link link(wire_, kPeer, nullptr, [&](const Message& message) {
    left += wire_->TakeAll().size();
    told.emplace_back(message.header.key, left);
  });
  link.SetWindow({100, 300});
  link.Send(Push(1, 200));
  link.Send(Push(2, 200));
  link.SendControl(ControlMessage(MessageType::kPull));
  link.Send(Push(3, 0));
  EXPECT_EQ(told, (std::vector<std::pair<uint64_t, size_t>>{{1, 0}, {2, 2}}));
  Message credit = Credit(300);
  link.Receive(&credit);
  EXPECT_EQ(told.back(), (std::pair<uint64_t, size_t>{3, 5}));
  EXPECT_EQ(told.size(), 3U);
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
  Receive(ControlMessage(MessageType::kPull));
  EXPECT_GE(link_.last_heard(), before);
  EXPECT_LE(link_.last_heard(), Now());
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
  const auto push = static_cast<size_t>(kPushType),
             abort = static_cast<size_t>(MessageType::kAbort);
  EXPECT_EQ(traffic.sent[abort], 1000 + sizeof(Header) + 6);
  EXPECT_EQ(traffic.sent[push] + traffic.sent[abort], 2000 + left);
  EXPECT_EQ(traffic.sent[static_cast<size_t>(MessageType::kPull)], 1000U);
  EXPECT_EQ(traffic.received[push], BytesOf(Part(0, 60, 100)) + BytesOf(Part(60, 40, 100)));
  EXPECT_EQ(traffic.received[abort], 0U);
}

TEST_F(OneEnd, DropsDataOnceClosed) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 100));
  link_.Send(Push(2, 100));
  link_.Close();
  link_.Send(Push(3, 100));
  Receive(Credit(100));
  link_.SendControl(ControlMessage(MessageType::kAbort));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].header.key, 1U);
  EXPECT_EQ(sent[1].header.type, MessageType::kAbort);
}

TEST_F(OneEnd, SendsNothingOnceHushed) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 200));
  wire_->TakeAll();
  link_.Hush();
  link_.Send(Push(2, 100));
  link_.SendControl(ControlMessage(MessageType::kAbort));
  Receive(ControlMessage(MessageType::kPing));
  Receive(Part(0, 10000, 10000));
  Receive(Credit(100));
  link_.Acknowledge();
  EXPECT_TRUE(wire_->empty());
}

}  // namespace
}  // namespace kvstore_ext
