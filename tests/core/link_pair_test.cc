// Two links that send to each other: everything arrives, whole and once, within the window.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "cluster.h"
#include "held_messages.h"
#include "transport/link.h"

namespace kvstore_ext {
namespace {

// Counts the bytes that have left and are not acknowledged.
class Counted : public HeldMessages {
 public:
  void Send(const Message& message) override {
    Count(message);
    if (message.header.type == MessageType::kBatch) {
      for (const Message& inside : InsideOf(message)) Count(inside);
    }
    HeldMessages::Send(message);
  }

  void TakeCredit(uint32_t total) {
    in_flight_ -= total - credited_;
    credited_ = total;
  }
  size_t most() const { return most_; }

 private:
  void Count(const Message& message) {
    if (message.header.type != MessageType::kPush) return;
    in_flight_ += std::max(message.payload.size, sizeof(Header));
    most_ = std::max(most_, in_flight_);
  }

  size_t in_flight_ = 0, most_ = 0;
  uint32_t credited_ = 0;
};

// One end, on the test's thread.
struct End {
  std::shared_ptr<Counted> wire = std::make_shared<Counted>();
  Link link{wire, 0};
  std::map<uint64_t, size_t> under_way;  // bytes by key

  void Send(Message message) {
    under_way[message.header.key] = message.payload.size;
    link.Send(std::move(message));
  }

  // The first message sent arrives at the other end; false where there is none.
  bool DeliverTo(End* other) {
    if (wire->empty()) return false;
    Message message = wire->TakeFirst();
    other->wire->TakeCredit(message.header.credit);
    other->link.Receive(message, [this](const Message& whole) {
      if (whole.header.type != MessageType::kPush) return;
      const uint64_t key = whole.header.key;
      EXPECT_EQ(under_way.count(key), 1U) << "arrived twice";
      EXPECT_TRUE(IsWhole(whole, under_way[key]));
      under_way.erase(key);
    });
    return true;
  }
};

TEST(LinkPair, DeliversEverythingOnceWithinTheWindow) {
  for (unsigned seed = 0; seed < 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](size_t bound) { return random() % bound; };
    const size_t part = sizeof(Header) + below(500);
    const size_t bytes = part * (1 + below(8)) + below(part);
    End ends[2];
    for (End& end : ends) end.link.SetWindow({part, bytes});
    if (seed % 2 == 1) ends[0].link.LetDataCarryCredit();
    for (uint64_t sent = 0; sent < 80;) {
      const size_t from = below(2);
      if (below(3) > 0) {
        ends[from].DeliverTo(&ends[1 - from]);
      } else {
        const size_t size = below(4) == 0 ? 0 : below(3000);
        ends[from].Send(Push(sent++, size, static_cast<int>(below(5))));
      }
    }
    while (ends[0].DeliverTo(&ends[1]) || ends[1].DeliverTo(&ends[0])) continue;
    for (const End& end : ends) {
      EXPECT_TRUE(end.under_way.empty()) << end.under_way.size() << " never left";
      EXPECT_LE(end.wire->most(), bytes + bytes / 8) << "with what the peer may withhold";
    }
  }
}

// An end that receives on a thread of its own.
class RunningEnd {
 public:
  explicit RunningEnd(size_t expected) : expected_(expected) {}

  void Run(Node* other) {
    node_->Connect({other});
    link_.SetWindow({100, 1000});
    node_->Start([this](Message message) {
      link_.Receive(std::move(message), [this](const Message& whole) {
        if (whole.header.type != MessageType::kPush) return;
        EXPECT_TRUE(IsWhole(whole, SizeOf(whole.header.key)));
        std::lock_guard<std::mutex> lock(mutex_);
        ++arrived_[whole.header.key];
      });
      changed_.notify_all();
    });
  }

  // Some travel in parts, some have no bytes.
  static size_t SizeOf(uint64_t key) { return key % 50 * 10; }

  void Send(uint64_t key) { link_.Send(Push(key, SizeOf(key), static_cast<int>(key % 3))); }

  // Waits until all have come.
  void ExpectAllOnce() {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1),
                                  [this] { return arrived_.size() == expected_; }));
    for (const auto& [key, times] : arrived_) EXPECT_EQ(times, 1) << "key " << key;
  }

  Node* node() { return node_.get(); }

  void Stop() {
    sender_.Stop();
    node_->Stop();
  }

 private:
  const size_t expected_;
  const std::shared_ptr<Node> node_ = std::make_shared<Node>(0);
  TaskThreads sender_{1};
  Link link_{node_, 0, nullptr, nullptr, &sender_};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, int> arrived_;  // times by key
};

TEST(LinkPair, ManyThreadsMaySendAtATime) {
  constexpr uint64_t kThreads = 3, kEach = 200;
  RunningEnd ends[2] = {RunningEnd(kThreads * kEach), RunningEnd(kThreads * kEach)};
  ends[0].Run(ends[1].node());
  ends[1].Run(ends[0].node());
  std::vector<std::thread> threads;
  for (RunningEnd& end : ends) {
    for (uint64_t first = 0; first < kThreads * kEach; first += kEach) {
      threads.emplace_back([&end, first] {
        for (uint64_t key = first; key < first + kEach; ++key) end.Send(key);
      });
    }
  }
  for (auto& thread : threads) thread.join();
  for (RunningEnd& end : ends) end.ExpectAllOnce();
  for (RunningEnd& end : ends) end.Stop();
}

}  // namespace
}  // namespace kvstore_ext
