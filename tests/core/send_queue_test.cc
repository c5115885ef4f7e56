// The send queue: order, window and closing.
#include "support/send_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace kvstore_ext {
namespace {

using Queue = SendQueue<int>;

// What a queue holds and lets out, by a sorted list.
struct Model {
  struct Entry {
    int priority, item;
    size_t bytes;
  };

  std::vector<Entry> waiting;  // in the order in which they leave
  size_t window = 0, idle = 0, in_flight = 0;
  bool closed = false;

  void Push(int priority, size_t bytes, int item) {
    if (closed) return;
    const auto behind = std::find_if(waiting.begin(), waiting.end(),
                                     [=](const Entry& entry) { return entry.priority < priority; });
    waiting.insert(behind, {priority, item, bytes});
  }

  std::optional<int> Pop() {
    if (waiting.empty()) return {};
    const Entry first = waiting.front();
    const bool fits = in_flight + first.bytes <= std::max(window, in_flight);
    if (!fits && in_flight > idle) return {};
    waiting.erase(waiting.begin());
    in_flight += first.bytes;
    return first.item;
  }

  void Release(size_t bytes) { in_flight -= std::min(in_flight, bytes); }
};

class RandomActions {
 public:
  explicit RandomActions(unsigned seed) : random_(seed), queue_(Window()) {}

  void Act() {
    if (Below(80) == 0) return Close();
    if (Below(8) == 0) return SetWindow(Below(2) * Below(50));
    if (Below(6) == 0) return Release(Below(101));
    return Below(2) == 0 ? Push() : Pop();
  }

  void Compare() {
    EXPECT_EQ(queue_.size(), model_.waiting.size());
    EXPECT_EQ(queue_.in_flight(), model_.in_flight);
    EXPECT_EQ(queue_.Idle(), model_.waiting.empty() && model_.in_flight <= model_.idle);
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  size_t Window() { return model_.window = Below(201); }

  int Priority() {
    const int extremes[] = {std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};
    return Below(8) == 0 ? extremes[Below(2)] : static_cast<int>(Below(7)) - 3;
  }

  void Push() {
    const int priority = Priority();
    const size_t bytes = Below(4) == 0 ? 0 : Below(101);
    queue_.Push(priority, bytes, pushed_);
    model_.Push(priority, bytes, pushed_++);
  }

  void Pop() {
    int item = 0;
    const bool taken = queue_.TryPop(&item);
    EXPECT_EQ(taken ? std::optional<int>(item) : std::nullopt, model_.Pop());
  }

  void Release(size_t bytes) {
    queue_.Release(bytes);
    model_.Release(bytes);
  }

  void SetWindow(size_t idle) {
    queue_.SetWindow(Window(), idle);
    model_.idle = idle;
  }

  void Close() {
    queue_.Close();
    model_.closed = true;
    model_.waiting.clear();
  }

  std::mt19937 random_;
  Model model_;
  Queue queue_;
  int pushed_ = 0;
};

TEST(SendQueue, DoesAsASortedListWhateverIsDoneToIt) {
  for (unsigned seed = 0; seed < 500 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomActions actions(seed);
    for (int i = 0; i < 100; ++i) {
      actions.Act();
      actions.Compare();
    }
  }
}

constexpr int kNothing = -1;

// Asserts that as many threads all return with these after `act`. In early ones of 100 repetitions
// they are probably about to pop then, in late ones popping.
void ExpectWoken(Queue* queue, int repetition, const std::function<void()>& act,
                 const std::vector<int>& expected) {
  std::promise<void> begin;
  const std::shared_future<void> begun = begin.get_future().share();
  std::vector<std::future<int>> results;
  for (size_t i = 0; i < expected.size(); ++i) {
    results.push_back(std::async(std::launch::async, [queue, begun] {
      begun.wait();
      int item = kNothing;
      return queue->Pop(&item) ? item : kNothing;
    }));
  }
  begin.set_value();
  std::this_thread::sleep_for(std::chrono::microseconds(20 * repetition));
  act();
  std::vector<int> found;
  for (auto& result : results) found.push_back(result.get());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

TEST(SendQueue, ClosingWakesEveryBlockedPop) {
  for (int i = 0; i < 100; ++i) {
    Queue queue(10);
    const auto close = [&] { queue.Close(); };
    ExpectWoken(&queue, i, close, {kNothing, kNothing, kNothing, kNothing});
  }
}

TEST(SendQueue, AClosedQueueLetsNothingInOrOut) {
  Queue queue(10);
  queue.Push(0, 1, 1);
  queue.Close();
  queue.Push(0, 1, 2);
  EXPECT_EQ(queue.size(), 0U);
  int item = kNothing;
  EXPECT_FALSE(queue.Pop(&item));
  EXPECT_FALSE(queue.TryPop(&item));
}

TEST(SendQueue, PushingWakesAsManyAsThereAreItems) {
  for (int i = 0; i < 100; ++i) {
    Queue queue(10);
    const auto push = [&] {
      for (int item = 0; item < 4; ++item) queue.Push(item, 1, item);
    };
    ExpectWoken(&queue, i, push, {0, 1, 2, 3});
  }
}

TEST(SendQueue, ReleasingAndWideningTheWindowWakeThoseWhoWaitForRoom) {
  for (int i = 0; i < 100; ++i) {
    Queue queue(10);
    for (int item = 0; item < 4; ++item) queue.Push(0, 5, item);
    for (int expected : {0, 1}) {
      int item = kNothing;
      EXPECT_TRUE(queue.TryPop(&item));
      EXPECT_EQ(item, expected);
    }
    const auto release = [&] { queue.Release(5); };
    const auto widen = [&] { queue.SetWindow(15); };
    ExpectWoken(&queue, i, release, {2});
    ExpectWoken(&queue, i, widen, {3});
  }
}

TEST(SendQueue, AnItemLargerThanTheWindowGoesAlone) {
  Queue queue(10);
  queue.Push(0, 4, 1);
  queue.Push(0, 100, 2);
  queue.Push(-1, 4, 3);
  int item = kNothing;
  EXPECT_TRUE(queue.TryPop(&item));
  EXPECT_EQ(item, 1);
  EXPECT_FALSE(queue.TryPop(&item));
  queue.Release(4);
  EXPECT_TRUE(queue.TryPop(&item));
  EXPECT_EQ(item, 2);
  EXPECT_FALSE(queue.TryPop(&item));
  queue.Release(100);
  EXPECT_TRUE(queue.TryPop(&item));
  EXPECT_EQ(item, 3);
}

TEST(SendQueue, ManyThreadsTakeEveryItemOnceAndNeverExceedTheWindow) {
  constexpr size_t kWindow = 35, kBytes = 10;
  constexpr int kEach = 500, kThreads = 3, kAll = kEach * kThreads;
  Queue queue(kWindow);
  std::vector<std::atomic<int>> taken(kAll);
  std::atomic<int> count{0};
  std::atomic<size_t> exceeded{0};
  std::vector<std::thread> threads;
  for (int first = 0; first < kAll; first += kEach) {
    threads.emplace_back([&queue, first] {
      for (int item = first; item < first + kEach; ++item) queue.Push(item % 5, kBytes, item);
    });
    threads.emplace_back([&] {
      for (int item = 0; queue.Pop(&item);) {
        exceeded += queue.in_flight() > kWindow;
        ++taken[item];
        queue.Release(kBytes);
        if (++count == kAll) queue.Close();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(exceeded, 0U);
  for (int item = 0; item < kAll; ++item) EXPECT_EQ(taken[item], 1) << "item " << item;
}

}  // namespace
}  // namespace kvstore_ext
