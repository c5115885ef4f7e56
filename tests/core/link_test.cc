// What a link sends, and when.
#include "transport/link.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "one_end.h"

namespace kvstore_ext {
namespace {

TEST_F(OneEnd, SendsByPriorityWithinTheWindow) {
  link_.SetWindow({100, 200});
  link_.Send(Push(1, 100, -1));
  link_.Send(Push(2, 100, -2));
  link_.Send(Push(3, 100, -3));
  link_.Send(Push(4, 100, 5));
  link_.Send(Push(5, 100, -3));
  EXPECT_EQ(TakeKeys(), (Keys{1, 2})) << "fill the window";
  Acknowledge(100);
  EXPECT_EQ(TakeKeys(), Keys{4}) << "is the most urgent";
  Acknowledge(200);
  EXPECT_EQ(TakeKeys(), (Keys{3, 5})) << "are as urgent, in the order in which they came";
}

TEST_F(OneEnd, ALaterAcknowledgementMakesUpForOneThatIsLost) {
  link_.SetWindow({100, 200});
  for (uint64_t key = 1; key < 7; ++key) link_.Send(Push(key, 100));
  EXPECT_EQ(TakeKeys(), (Keys{1, 2}));
  Receive(Credit(200));
  EXPECT_EQ(TakeKeys(), (Keys{3, 4}));
  Receive(Credit(100));
  EXPECT_EQ(TakeKeys(), Keys{}) << "that was overtaken";
  Receive(Credit(400));
  EXPECT_EQ(TakeKeys(), (Keys{5, 6}));
}

TEST_F(OneEnd, MoreThanHasLeftIsNotTakenForWhatFollows) {
  link_.SetWindow({100, 200});
  for (uint64_t key = 1; key < 7; ++key) link_.Send(Push(key, 100));
  EXPECT_EQ(TakeKeys(), (Keys{1, 2}));
  Receive(Credit(1000000));
  EXPECT_EQ(TakeKeys(), (Keys{3, 4}));
  Receive(Credit(200));
  EXPECT_EQ(TakeKeys(), Keys{});
  Receive(Credit(300));
  EXPECT_EQ(TakeKeys(), Keys{5});
}

TEST_F(OneEnd, AcknowledgementsGoOnBeyondTheLargestNumber) {
  constexpr uint64_t kSlice = 1 << 28;
  link_.SetWindow({kSlice, kSlice});
  const Buffer bytes = Buffer::Allocate(kSlice);
  const auto send = [&](uint64_t key) {
    Message message = Push(key, 0);
    message.payload = bytes;
    link_.Send(std::move(message));
  };
  send(0);
  for (uint64_t key = 1; key < 40; ++key) {
    send(key);
    EXPECT_EQ(TakeKeys(), Keys{key - 1});
    Acknowledge(kSlice);
  }
  EXPECT_EQ(TakeKeys(), Keys{39});
}

TEST_F(OneEnd, ASignOfLifeCountsWhatSomebodyWaitsFor) {
  link_.Send(Push(1, 100));
  link_.SendControl(ControlMessage(MessageType::kMeet));
  link_.SendControl(ControlMessage(MessageType::kScaler));
  for (const MessageType type : {MessageType::kWindow, MessageType::kNotice, MessageType::kOrder}) {
    link_.SendControl(ControlMessage(type));
  }
  wire_->TakeAll();
  for (int i = 0; i < 2; ++i) {
    link_.SendSign(ControlMessage(MessageType::kCredit));
    EXPECT_EQ(CountIn(wire_->TakeFirst()), 3U) << "no sign is missed";
  }
}

TEST_F(OneEnd, AddressesThePeer) {
  link_.Send(Push(1, 10));
  link_.SendControl(ControlMessage(MessageType::kMeet));
  for (const Message& message : wire_->TakeAll()) EXPECT_EQ(message.peer, kPeer);
}

TEST_F(OneEnd, RefusesWhatNoHeaderCanCount) {
  Message message = Push(1, 10);
  message.payload.size = size_t{1} << 32;
  EXPECT_THROW(link_.Send(message), std::length_error);
  EXPECT_EQ(TakeKeys(), Keys{});
}

TEST_F(OneEnd, SendsNoMoreThanSoManyPartsWhateverTheWindowSays) {
  link_.SetWindow({1, 1 << 30});
  link_.Send(Push(1, 1000000));
  size_t parts = 0;
  for (Keys keys = TakeKeys(); !keys.empty(); keys = TakeKeys()) {
    parts += keys.size();
    Receive(Credit(0));
  }
  EXPECT_GT(parts, 900U);
  EXPECT_LE(parts, 1024U);
}

TEST_F(OneEnd, SendsFewMessagesToWhoIsNotHeardOf) {
  link_.SetWindow({1 << 20, 1 << 30});
  constexpr size_t kAll = 1500;
  for (uint64_t key = 0; key < kAll; ++key) link_.Send(Push(key, 20000));
  size_t left = 0;
  while (left < kAll) {
    const size_t more = TakeKeys().size();
    ASSERT_GT(more, 0U) << "once it is heard of others leave";
    EXPECT_LT(more, 1000U) << "or ZeroMQ waits for room";
    left += more;
    EXPECT_EQ(TakeKeys(), Keys{});
    Receive(ControlMessage(MessageType::kCredit));
  }
  EXPECT_EQ(left, kAll);
}

TEST_F(OneEnd, SendsFewControlMessagesOfKeysToWhoIsNotHeardOf) {
  constexpr size_t kAll = 1500;
  for (const MessageType type : {MessageType::kScaler, MessageType::kMeet, MessageType::kSparse}) {
    for (size_t i = 0; i < kAll; ++i) link_.SendControl(ControlMessage(type, "4321"));
    const size_t before = wire_->TakeAll().size();
    EXPECT_GT(before, 100U);
    EXPECT_LT(before, 1000U) << "or ZeroMQ waits for room";
    Receive(ControlMessage(MessageType::kCredit));
    EXPECT_EQ(before + wire_->TakeAll().size(), kAll) << "none is lost";
  }
}

TEST_F(OneEnd, GivesFewSignsToWhoIsNotHeardOf) {
  const auto give = [&](int signs) {
    for (int i = 0; i < signs; ++i) link_.SendSign(ControlMessage(MessageType::kCredit));
    return wire_->TakeAll().size();
  };
  EXPECT_EQ(give(200), 200U);
  EXPECT_GE(give(2000), 300U) << "who is late still hears that this one lives";
  EXPECT_LT(give(10000), 500U) << "or ZeroMQ waits for room";
  EXPECT_EQ(give(10), 0U);
  Receive(ControlMessage(MessageType::kCredit));
  EXPECT_EQ(give(10), 10U) << "who has been stopped for long goes on";
}

TEST_F(OneEnd, SendsNoScalerAmongData) {
  link_.SetWindow({1000, 1000});
  link_.Send(Push(1, 1000));
  for (uint64_t key = 2; key < 5; ++key) link_.Send(Push(key, 200));
  wire_->TakeAll();
  for (int i = 0; i < 600; ++i) link_.SendControl(ControlMessage(MessageType::kScaler, "4321"));
  wire_->TakeAll();
  Acknowledge(1000);  // lets the scalers that waited leave, and then the data
  const Message scalers = wire_->TakeFirst();
  EXPECT_EQ(scalers.priority, kControlPriority);
  for (const Message& inside : OneByOne({scalers})) {
    EXPECT_EQ(inside.header.type, MessageType::kScaler);
  }
  EXPECT_EQ(TakeKeys(), (Keys{2, 3, 4}));
}

TEST_F(OneEnd, PassesNoChecksumOn) {
  Message order = ControlMessage(MessageType::kOrder);
  order.header.checksum = 5;
  link_.SendControl(order);
  EXPECT_EQ(wire_->TakeFirst().header.checksum, 0U);
}

TEST_F(OneEnd, SlicesOfFewBytesOrNoneAreBoundedToo) {
  link_.SetWindow({100, 200});
  for (uint64_t key = 0; key < 100; ++key) link_.Send(Push(key, key % 3));
  EXPECT_LT(TakeKeys().size(), 10U);
}

TEST_F(OneEnd, DoesNotWaitForTheLittleCreditThatThePeerKeepsToItself) {
  link_.SetWindow({1000, 1000});
  link_.Send(Push(1, 0));
  link_.Send(Push(2, 1000));
  EXPECT_EQ(TakeKeys(), (Keys{1, 2}));
}

TEST_F(OneEnd, BoundsHowManySlicesAreAskedFor) {
  link_.SetWindow({100, 200});
  for (int i = 0; i < 100; ++i) link_.Send(ControlMessage(MessageType::kPull));
  const size_t asked = wire_->TakeAll().size();
  EXPECT_LT(asked, 10U);
  Acknowledge(asked * sizeof(Header));
  EXPECT_EQ(wire_->TakeAll().size(), asked);
}

TEST_F(OneEnd, SendsControlMessagesAtOnceThoughTheWindowIsFull) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 100));
  link_.Send(Push(2, 100));
  link_.SendControl(ControlMessage(MessageType::kAbort, "reason"));
  link_.SendControl(ControlMessage(MessageType::kScaler, "4321"));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[1].header.type, MessageType::kAbort);
  EXPECT_EQ(sent[1].text, "reason");
  EXPECT_EQ(sent[2].header.type, MessageType::kScaler);
  EXPECT_EQ(sent[2].text, "4321");
  Acknowledge(100);
  EXPECT_EQ(TakeKeys(), Keys{2}) << "what has taken no room gives none back";
}

TEST_F(OneEnd, SendsTheMoreUrgentBetweenTheParts) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 300, 0));
  link_.Send(Push(2, 100, 1));
  EXPECT_EQ(TakeKeys(), Keys{1});
  Acknowledge(100);
  EXPECT_EQ(TakeKeys(), Keys{2});
  Acknowledge(100);
  EXPECT_EQ(TakeKeys(), Keys{1});
  Acknowledge(100);
  EXPECT_EQ(TakeKeys(), Keys{1});
}

TEST_F(OneEnd, PartsOfWhatIsQueuedStayAsTheyAre) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 300));
  link_.SetWindow({1000, 1000});
  EXPECT_EQ(TakeKeys(), (Keys{1, 1, 1})) << "a wider window lets them go";
  link_.Send(Push(2, 300));
  EXPECT_EQ(TakeKeys(), Keys{2});
}

TEST_F(OneEnd, ANarrowerWindowHoldsBack) {
  link_.SetWindow({100, 1000});
  link_.Send(Push(1, 100));
  link_.SetWindow({100, 100});
  link_.Send(Push(2, 100));
  EXPECT_EQ(TakeKeys(), Keys{1});
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
  link.SendControl(ControlMessage(MessageType::kLeave));
  link.Send(Push(3, 0));
  EXPECT_EQ(told, (std::vector<std::pair<uint64_t, size_t>>{{1, 0}, {2, 2}}));
  link.Receive(Credit(300), [](const Message&) {});
  EXPECT_EQ(told.back(), (std::pair<uint64_t, size_t>{3, 5}));
  EXPECT_EQ(told.size(), 3U);
}

TEST_F(OneEnd, DropsDataOnceClosed) {
  link_.SetWindow({100, 100});
  link_.Send(Push(1, 100));
  link_.Send(Push(2, 100));
  link_.Close();
  link_.Send(Push(3, 100));
  Acknowledge(100);
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
  Acknowledge(100);
  EXPECT_TRUE(wire_->empty());
}

// Each message takes until the test lets it go.
class Slow : public Transport {
 public:
  void Start(MessageHandler) override {}
  void Stop() override {}
  void Send(const Message&) override {
    begun.set_value();
    goes.get_future().wait();
  }

  std::promise<void> begun, goes;
};

TEST(Link, TellsWhetherAnythingMayLeaveOnceItIsHushed) {
  const auto wire = std::make_shared<Slow>();
  Link link(wire, kPeer);
  std::thread sends([&] { link.Send(Push(1, 10)); });
  wire->begun.get_future().wait();
  link.Hush();
  EXPECT_TRUE(link.has_in_hand());
  wire->goes.set_value();
  sends.join();
  EXPECT_FALSE(link.has_in_hand());
}

}  // namespace
}  // namespace kvstore_ext
