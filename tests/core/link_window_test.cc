// How a link measures what it can do, and follows the window that rank 0 announces.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include "held_messages.h"
#include "support/clock.h"
#include "transport/link.h"

namespace kvstore_ext {
namespace {

constexpr size_t kSlice = 200000;

class Measured : public testing::Test {
 protected:
  // As if a ping had been sent so many seconds ago.
  void ReceivePong(double seconds) {
    Message pong = ControlMessage(MessageType::kPong);
    pong.header.key = static_cast<uint64_t>((Now() - seconds) * 1e9);
    Receive(pong);
  }

  void Receive(Message message) {
    link_.Receive(std::move(message), [](const Message&) {});
  }

  size_t CountPings() {
    size_t pings = 0;
    for (const Message& message : wire_->TakeAll()) {
      pings += message.header.type == MessageType::kPing;
    }
    return pings;
  }

  std::atomic<int> changes_{0};
  const std::shared_ptr<WindowEstimator> estimator_ =
      std::make_shared<WindowEstimator>(kSlice, 1, [this](const Window&) { ++changes_; });
  const std::shared_ptr<HeldMessages> wire_ = std::make_shared<HeldMessages>();
  Link link_{wire_, 0, estimator_};
};

TEST_F(Measured, OfOneHostHasAWindowOfItsOwn) {
  estimator_->Acknowledged(0, 1, 1000);  // begins a measurement, of which any round trip would tell
  estimator_->Acknowledged(0, 2000000, 1000.01);
  link_.UseSharedWindow();
  link_.SetWindow({100, 100});
  for (int i = 0; i < 4; ++i) link_.Send(Push(i, 2 * kSlice));
  size_t bytes = 0;
  for (const Message& message : wire_->TakeAll()) {
    EXPECT_LE(message.payload.size, SharedMemory::kBlockBytes);
    bytes += message.payload.size;
  }
  EXPECT_EQ(bytes, 4 * 2 * kSlice);
  for (int i = 1; i <= 10; ++i) Receive(Credit(i * kSlice));
  ReceivePong(1);
  EXPECT_EQ(changes_, 0) << "as it says nothing of the wires";
}

TEST_F(Measured, PingsWhileTheLinkIsIdle) {
  link_.Measure();
  EXPECT_EQ(CountPings(), 1U);
}

TEST_F(Measured, AwaitsTheAnswerToItsPingAlone) {
  const Message early = PongMessage(PingMessage(0), 1);
  EXPECT_FALSE(link_.Awaits(early)) << "it has asked nothing";
  link_.Measure();
  const Message ping = wire_->TakeFirst();
  const Message pong = PongMessage(ping, 1);
  EXPECT_TRUE(link_.Awaits(pong));
  for (const int64_t other :
       {std::numeric_limits<int64_t>::min(), int64_t{0}, TimeOfPing(ping) + 1}) {
    EXPECT_FALSE(link_.Awaits(PongMessage(PingMessage(other), 1))) << other;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // no two pings are closer
  link_.Measure();
  EXPECT_EQ(CountPings(), 0U) << "one is under way";
  Receive(pong);
  EXPECT_FALSE(link_.Awaits(pong)) << "it has come already";
}

TEST_F(Measured, DoesNotPingWhileTheLinkIsBusy) {
  link_.Send(Push(1, 20000));
  EXPECT_EQ(CountPings(), 1U) << "it goes ahead";
  ReceivePong(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // no two pings are closer
  link_.Measure();
  EXPECT_EQ(CountPings(), 0U);
  Receive(Credit(20000));
  link_.Measure();
  EXPECT_EQ(CountPings(), 1U);
}

TEST_F(Measured, PingsAgainForAWhileOnceAnswered) {
  link_.Measure();
  size_t pings = 0;
  for (size_t more = 1; more > 0 && pings < 100; more = CountPings()) {
    pings += more;
    ReceivePong(0);
  }
  EXPECT_GT(pings, 1U);
  EXPECT_LT(pings, 100U);
}

TEST_F(Measured, TellsTheEstimatorTheRoundTrip) {
  estimator_->Acknowledged(0, 1, 1000);  // begins a measurement
  estimator_->Acknowledged(0, 2000000, 1000.01);
  const Window before = estimator_->advice();
  ReceivePong(1);
  EXPECT_GT(changes_, 0);
  EXPECT_GT(estimator_->advice().bytes, before.bytes) << "a long link holds more";
}

TEST_F(Measured, TellsTheEstimatorWhatIsAcknowledged) {
  // No pause is one on a link as long as that, so that whatever is acknowledged tells a rate.
  estimator_->RoundTrip(0, 1e6);
  const double end = Now() + 60;
  uint64_t acknowledged = 0;
  while (changes_ == 0 && Now() < end) {
    link_.Send(Push(1, kLeastPart));
    Receive(Credit(acknowledged += kLeastPart));
  }
  EXPECT_GT(changes_, 0);
}

TEST_F(Measured, DoesNotTellTheEstimatorOfMoreThanItHasSent) {
  ReceivePong(0.01);
  const Window before = estimator_->advice();
  for (const uint64_t bytes : {50000U, 100000U, std::numeric_limits<uint32_t>::max() / 4}) {
    Receive(Credit(bytes));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(estimator_->advice(), before);
}

TEST(LinkWithoutEstimator, DoesNotPing) {
  const auto wire = std::make_shared<HeldMessages>();
  Link link(wire, 0);
  link.Measure();
  EXPECT_TRUE(wire->empty());
}

Message Announcement(uint64_t number, const Window& window) {
  Message message = ControlMessage(MessageType::kWindow, window.Pack());
  message.header.round = number;
  return message;
}

class Follower : public testing::Test {
 protected:
  Follower() {
    for (int peer = 0; peer < 2; ++peer) {
      wires_.push_back(std::make_shared<HeldMessages>());
      links_.push_back(std::make_unique<Link>(wires_.back(), peer));
    }
  }

  // Sends one slice to each peer; returns in how many parts it leaves for both.
  size_t CountParts() {
    size_t parts = 0;
    for (size_t peer = 0; peer < links_.size(); ++peer) {
      links_[peer]->Send(Push(1, 1000));
      parts += wires_[peer]->TakeAll().size();
    }
    return parts;
  }

  std::vector<std::shared_ptr<HeldMessages>> wires_;
  std::vector<std::unique_ptr<Link>> links_;
  uint64_t latest_ = 0;
};

TEST_F(Follower, TakesALaterWindowForAllLinks) {
  EXPECT_TRUE(FollowWindow(Announcement(1, {500, 100000}), &latest_, links_));
  EXPECT_EQ(latest_, 1U);
  EXPECT_EQ(CountParts(), 4U);
  EXPECT_TRUE(FollowWindow(Announcement(7, {100, 100000}), &latest_, links_));
  EXPECT_EQ(latest_, 7U);
  EXPECT_EQ(CountParts(), 20U);
}

TEST_F(Follower, LeavesOutAnEarlierWindow) {
  FollowWindow(Announcement(2, {500, 100000}), &latest_, links_);
  for (const uint64_t number : {1, 2}) {
    EXPECT_FALSE(FollowWindow(Announcement(number, {100, 100000}), &latest_, links_));
  }
  EXPECT_EQ(latest_, 2U);
  EXPECT_EQ(CountParts(), 4U);
}

TEST_F(Follower, RefusesAnAnnouncementThatIsNone) {
  Message announcement = Announcement(1, {500, 100000});
  announcement.text.pop_back();
  EXPECT_THROW(FollowWindow(announcement, &latest_, links_), std::invalid_argument);
  EXPECT_EQ(latest_, 0U) << "so that a later one is taken";
}

}  // namespace
}  // namespace kvstore_ext
