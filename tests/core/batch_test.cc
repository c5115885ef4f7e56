// Small messages that travel as one.
#include "transport/batch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "one_end.h"
#include "support/clock.h"
#include "support/task_threads.h"
#include "transport/checksum.h"
#include "transport/gate.h"
#include "transport/placing.h"
#include "transport/shared_memory.h"

namespace kvstore_ext {
namespace {

Message Small(uint64_t key, size_t bytes, int priority = 0) {
  Message message = Push(key, bytes, priority);
  message.header.whole = static_cast<uint32_t>(bytes);
  return message;
}

Message BatchOf(const std::vector<size_t>& sizes) {
  Batch batch;
  for (size_t i = 0; i < sizes.size(); ++i) batch.Add(Small(i, sizes[i], static_cast<int>(i) - 1));
  return batch.Take();
}

TEST(Batch, ArrivesAsItWas) {
  const std::vector<size_t> sizes = {100, 0, 7, 16000};
  Message batch = BatchOf(sizes);
  EXPECT_EQ(batch.header.type, MessageType::kBatch);
  EXPECT_EQ(batch.priority, -1) << "of the first, the most urgent";
  batch.peer = 2;
  batch.payload_is_ours = true;
  const std::vector<Message> messages = InsideOf(batch);
  ASSERT_EQ(messages.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(messages[i].header.key, i);
    EXPECT_EQ(messages[i].peer, 2);
    EXPECT_EQ(messages[i].priority, static_cast<int>(i) - 1);
    EXPECT_TRUE(messages[i].payload_is_ours);
    EXPECT_TRUE(IsWhole(messages[i], sizes[i]));
  }
}

TEST(Batch, OfOneIsThatOne) {
  Batch batch;
  EXPECT_TRUE(batch.empty());
  batch.Add(Small(5, 100));
  EXPECT_FALSE(batch.empty());
  const Message message = batch.Take();
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(message.header.key, 5U);
  EXPECT_TRUE(IsWhole(message, 100));
}

TEST(Batch, HasRoomForAFewMessages) {
  Batch batch;
  size_t added = 0;
  for (; batch.HasRoomFor(Small(added, 1000)); ++added) batch.Add(Small(added, 1000));
  EXPECT_GT(added, 10U);
  EXPECT_LE(batch.Take().payload.size, Batch::kMostBytes);
}

TEST(Batch, IsForWholeMessagesOfFewBytes) {
  EXPECT_TRUE(Batch::IsSmall(Small(1, 0)));
  EXPECT_TRUE(Batch::IsSmall(Small(1, 10000)));
  EXPECT_FALSE(Batch::IsSmall(Small(1, 20000)));
  EXPECT_FALSE(Batch::IsSmall(Part(0, 50, 100)));
}

TEST(Batch, TellsWhereItIsCutOff) {
  const Message batch = BatchOf({100, 200});
  const size_t first = BatchOf({100, 0}).payload.size - BatchOf({0, 0}).payload.size / 2;
  for (size_t bytes = 1; bytes < batch.payload.size; ++bytes) {
    if (bytes == first) continue;
    Message cut = batch;
    cut.payload.size = bytes;
    EXPECT_GT(Batch::Read(cut).unread, 0U) << bytes;
  }
}

TEST(Batch, ReadsNoSizesBeyondItsEnd) {
  Message batch = BatchOf({100, 200});
  const uint32_t most = 0xffffffff;
  for (const size_t offset : {4, 8}) {  // of the text, of the payload
    Message wrong = batch;
    wrong.payload = Buffer::Allocate(batch.payload.size);
    std::memcpy(wrong.payload.data.get(), batch.payload.data.get(), batch.payload.size);
    std::memcpy(wrong.payload.data.get() + offset, &most, sizeof most);
    EXPECT_GT(Batch::Read(wrong).unread, 0U);
  }
}

TEST_F(OneEnd, SendsWhatIsSmallTogetherAndInOrder) {
  link_.SetWindow({27000, 24000});
  link_.Send(Push(1, 27000));
  link_.Send(Push(2, 1500, 1));
  link_.Send(Push(3, 3000, 2));
  link_.Send(Push(4, 17000, 0));
  link_.Send(Push(5, 1500, -1));
  EXPECT_EQ(TakeKeys(), Keys{1});
  Acknowledge(27000);
  Message first = wire_->TakeFirst();
  EXPECT_EQ(first.header.type, MessageType::kBatch);
  EXPECT_EQ(first.priority, 2);
  const std::vector<Message> inside = InsideOf(first);
  ASSERT_EQ(inside.size(), 2U);
  EXPECT_EQ(inside[0].header.key, 3U);
  EXPECT_EQ(inside[1].header.key, 2U);
  EXPECT_EQ(TakeKeys(), (Keys{4, 5}));
}

TEST_F(OneEnd, LetsNoMoreThanTheWindowIntoABatch) {
  link_.SetWindow({20000, 20000});
  link_.Send(Push(1, 20000));
  for (uint64_t key = 2; key < 10; ++key) link_.Send(Push(key, 6000));
  wire_->TakeAll();
  Acknowledge(20000);
  const Message batch = wire_->TakeFirst();
  ASSERT_EQ(batch.header.type, MessageType::kBatch);
  EXPECT_EQ(InsideOf(batch).size(), 3U) << "and the more urgent may still overtake the others";
  EXPECT_TRUE(wire_->empty());
  link_.Send(Push(10, 6000, 5));
  Acknowledge(12000);
  EXPECT_EQ(InsideOf(wire_->TakeFirst()).front().header.key, 10U);
}

TEST_F(OneEnd, CountsABatchAsOneMessage) {
  link_.SetWindow({27000, 24000});
  link_.Send(Push(1, 27000));
  for (uint64_t key = 2; key < 10; ++key) link_.Send(Push(key, 1000));
  Acknowledge(27000);
  Receive(BatchOf({100, 0, 3000}));
  Traffic traffic;
  link_.AddTo(&traffic);
  const auto batches = static_cast<size_t>(MessageType::kBatch);
  const auto pushes = static_cast<size_t>(MessageType::kPush);
  EXPECT_EQ(traffic.messages_sent[pushes], 1U);
  EXPECT_EQ(traffic.messages_sent[batches], 1U);
  EXPECT_EQ(traffic.messages_received[batches], 1U);
  EXPECT_EQ(traffic.messages_received[pushes], 0U);
}

TEST_F(OneEnd, CountsWhatHasComeInBatchesAndWhatTheGateRefuses) {
  Receive(BatchOf({100, 0, 3000}));
  link_.TakeRefused(Push(9, 100));
  Message sign = ControlMessage(MessageType::kCredit);
  const auto lost = [&](uint32_t left) {
    AnnounceCount(&sign, left);
    int lost = 0;
    for (int i = 0; i < 8; ++i) {
      Receive(sign);
      lost = link_.Lost(Now(), 0.001);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return lost;
  };
  EXPECT_EQ(lost(4), 0);
  EXPECT_EQ(lost(6), 2);
}

TEST_F(OneEnd, WhatIsInABatchAcknowledgesNothing) {
  constexpr uint64_t kHuge = 3U << 29;
  link_.SetWindow({kHuge, kHuge});
  for (int i = 0; i < 2; ++i) {
    Message message = Push(1, 0);
    message.payload = Buffer::Allocate(kHuge);
    link_.Send(std::move(message));
    wire_->TakeAll();
    Acknowledge(kHuge);
  }
  link_.SetWindow({27000, 27000});
  link_.Send(Push(2, 27000));
  link_.Send(Push(3, 27000));
  EXPECT_EQ(TakeKeys(), Keys{2});
  Message batch = BatchOf({100, 0, 3000});
  batch.header.credit = static_cast<uint32_t>(2 * kHuge);  // of before
  Receive(batch);
  EXPECT_EQ(TakeKeys(), Keys{});
}

TEST_F(OneEnd, TakesAndCountsWhatIsInABatch) {
  Message batch = BatchOf({100, 0, 9000});
  batch.header.credit = 17;
  Keys keys;
  link_.Receive(batch, [&keys](const Message& message) { keys.push_back(message.header.key); });
  EXPECT_EQ(keys, (Keys{0, 1, 2}));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.credit, 100 + sizeof(Header) + 9000);
  Traffic traffic;
  link_.AddTo(&traffic);
  uint64_t received = 0;
  for (const uint64_t bytes : traffic.received) received += bytes;
  EXPECT_EQ(received, BytesOf(batch));
}

TEST_F(OneEnd, TakesOfABatchThatBreaksOffWhatIsWholeAndGivesTheRestBack) {
  Message batch = BatchOf({9000, 9000});
  const size_t of_one = batch.payload.size / 2;
  batch.payload.size -= 8;
  batch.header.whole = static_cast<uint32_t>(batch.payload.size);
  Keys keys;
  const auto act = [&keys](const Message& message) { keys.push_back(message.header.key); };
  EXPECT_THROW(link_.Receive(batch, act), UnfitPart);
  EXPECT_EQ(keys, (Keys{0}));
  const std::vector<Message> sent = wire_->TakeAll();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.credit, 9000 + of_one - 8) << "no less than the peer has counted";
}

TEST(LinkWithASender, SendsWhatIsAloneAtOnceAndMoreTogether) {
  const auto wire = std::make_shared<HeldMessages>();
  TaskThreads sender(1);
  Link link(wire, kPeer, nullptr, nullptr, &sender);
  link.SetWindow({100000, 100000});
  std::promise<void> may_go_on;
  sender.Run(1, [&] { may_go_on.get_future().wait(); });  // as where processors are behind
  link.Send(Push(0, 4000));
  EXPECT_EQ(wire->TakeAll().size(), 1U);
  for (uint64_t key = 1; key <= 3; ++key) link.Send(Push(key, 100));
  EXPECT_TRUE(wire->empty());
  std::promise<void> sent;
  sender.Run(-1, [&] { sent.set_value(); });
  may_go_on.set_value();
  sent.get_future().wait();
  const Message batch = wire->TakeFirst();
  EXPECT_EQ(InsideOf(batch).size(), 3U);
  EXPECT_TRUE(wire->empty());
  sender.Stop();
}

// As ps-lite where it finds no way to a peer.
class NoWay : public HeldMessages {
 public:
  void Send(const Message& message) override {
    if (!empty()) throw std::runtime_error("there is no way");
    HeldMessages::Send(message);
  }
};

TEST(LinkWithASender, TellsWhatTheSenderCannotSend) {
  std::promise<std::string> told;
  TaskThreads sender(1, [&told](const std::exception& error) { told.set_value(error.what()); });
  Link link(std::make_shared<NoWay>(), kPeer, nullptr, nullptr, &sender);
  link.SetWindow({100000, 100000});
  link.Send(Push(0, 4000));
  link.Send(Push(1, 100));
  EXPECT_EQ(told.get_future().get(), "there is no way");
  sender.Stop();
}

// One end of memory that two processes have, and the transport that uses it.
class SharedMessages : public HeldMessages {
 public:
  explicit SharedMessages(std::shared_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}

  bool Put(Message* message) override { return PutPayload(message, memory_.get()); }
  void Fetch(Message* message) const override { FetchPayload(message, memory_.get()); }

  size_t PutWhileThereIsRoom() {
    size_t count = 0;
    while (memory_->Put(Buffer::Allocate(1))) ++count;
    return count;
  }

 private:
  const std::shared_ptr<SharedMemory> memory_;
};

class LinkOfOneHost : public testing::Test {
 protected:
  LinkOfOneHost() {
    int descriptor = -1;
    ours_ = std::make_shared<SharedMessages>(SharedMemory::Make(&descriptor));
    theirs_ = std::make_shared<SharedMessages>(SharedMemory::Open(descriptor));
    close(descriptor);
  }

  // What leaves together while the first is under way and the sender is busy.
  std::vector<Message> SendThree(Link* link, Message third) {
    std::promise<void> may_go_on, sent;
    link->UseSharedWindow();
    link->Send(Push(0, kBytes));
    sender_.Run(1, [&] { may_go_on.get_future().wait(); });
    link->Send(Push(1, kBytes));
    link->Send(Push(2, kBytes));
    link->Send(std::move(third));
    sender_.Run(-1, [&] { sent.set_value(); });
    may_go_on.set_value();
    sent.get_future().wait();
    std::vector<Message> messages;
    while (!ours_->empty()) messages.push_back(ours_->TakeFirst());
    sender_.Stop();
    return messages;
  }

  static constexpr size_t kBytes = 100000;
  std::shared_ptr<SharedMessages> ours_, theirs_;
  TaskThreads sender_{1};
};

TEST_F(LinkOfOneHost, SendsSlicesTogetherThatLieInItsMemory) {
  Link link(ours_, kPeer, nullptr, nullptr, &sender_);
  Message question = Push(3, kBytes);
  question.header.type = MessageType::kAsk;
  const std::vector<Message> sent = SendThree(&link, question);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].header.type, MessageType::kBatch);
  EXPECT_LT(sent[1].payload.size, 1000U);
  Link other(theirs_, kPeer);
  std::vector<Message> received;
  other.Receive(sent[1], [&](const Message& message) { received.push_back(message); });
  ASSERT_EQ(received.size(), 3U);
  for (size_t i = 0; i < received.size(); ++i) {
    EXPECT_EQ(received[i].header.key, i + 1);
    EXPECT_FALSE(received[i].place);
    Message as_push = received[i];
    as_push.header.type = MessageType::kPush;
    EXPECT_TRUE(IsWhole(as_push, kBytes));
  }
  EXPECT_FALSE(received[0].payload_is_ours) << "it lies in memory of both";
  EXPECT_TRUE(received[2].payload_is_ours) << "it may be kept for long";
  Traffic traffic;
  link.AddTo(&traffic);
  EXPECT_EQ(traffic.messages_sent[static_cast<size_t>(MessageType::kBatch)], 1U);
  EXPECT_GT(traffic.sent[static_cast<size_t>(MessageType::kPush)], 3 * kBytes);
  EXPECT_GT(traffic.sent[static_cast<size_t>(MessageType::kAsk)], kBytes);
}

TEST_F(LinkOfOneHost, RefusesAPlaceWhereNothingLies) {
  Link link(ours_, kPeer, nullptr, nullptr, &sender_);
  const std::vector<Message> sent = SendThree(&link, Push(3, kBytes));
  Gate gate(Side::kServer);
  Link other(theirs_, kPeer, nullptr, nullptr, nullptr, &gate);
  int received = 0;
  const auto count = [&received](const Message&) { ++received; };
  other.Receive(sent[1], count);
  EXPECT_EQ(received, 3);
  testing::internal::CaptureStderr();
  other.Receive(sent[1], count);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(received, 3) << "as they have been taken";
  EXPECT_EQ(gate.refused(), 3U);
}

TEST_F(LinkOfOneHost, FreesABlockBeforeTheNextMessageIsTaken) {
  Link link(ours_, kPeer, nullptr, nullptr, &sender_);
  const std::vector<Message> sent = SendThree(&link, Push(3, kBytes));
  Link other(theirs_, kPeer);
  size_t free = 0;
  other.Receive(sent[1], [&](const Message& message) {
    if (message.header.key == 3) free = ours_->PutWhileThereIsRoom();
  });
  EXPECT_EQ(free, SharedMemory::kBlocks - 2) << "the first push and the third are still there";
}

TEST_F(LinkOfOneHost, SendsEachAloneThatHasAChecksum) {
  Link link(ours_, kPeer, nullptr, nullptr, &sender_);
  link.UseChecksums();
  const std::vector<Message> sent = SendThree(&link, Push(3, kBytes));
  ASSERT_EQ(sent.size(), 4U);
  for (const Message& message : sent) {
    EXPECT_EQ(message.header.checksum, ChecksumOf(message));
    EXPECT_TRUE(IsWhole(message, kBytes));
  }
}

TEST(Batch, ReadsNoPlaceOfAnotherSize) {
  Batch batch;
  for (uint64_t key = 0; key < 2; ++key) {
    Message message = Small(key, 5000);
    message.payload = Buffer();
    message.place = Place{static_cast<uint32_t>(key), 5000, 7};
    ASSERT_TRUE(Batch::IsSmall(message));
    batch.Add(message);
  }
  Message whole = batch.Take();
  EXPECT_EQ(InsideOf(whole)[1].place->block, 1U);
  const uint32_t bytes = 6000;
  std::memcpy(whole.payload.data.get() + whole.payload.size - 12, &bytes, sizeof bytes);
  EXPECT_GT(Batch::Read(whole).unread, 0U);
}

}  // namespace
}  // namespace kvstore_ext
