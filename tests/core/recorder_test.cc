// What a recorder keeps, counts and leaves out.
#include "trace/recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cluster.h"
#include "held_messages.h"
#include "transport/link.h"

namespace kvstore_ext {
namespace {

constexpr size_t kEventsAt = 4096;

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Recorded : public testing::Test {
 protected:
  // Of this process: others run tests of this file at the same time.
  Recorded()
      : path_(testing::TempDir() + "recorder_test_" + std::to_string(getpid()) + ".events") {}
  ~Recorded() override { std::remove(path_.c_str()); }

  // What is in the file.
  std::vector<Event> Events() const {
    const std::string content = Read(path_);
    std::vector<Event> events((content.size() - kEventsAt) / sizeof(Event));
    std::memcpy(events.data(), content.data() + kEventsAt, events.size() * sizeof(Event));
    return events;
  }

  void RecordOne(uint64_t key) {
    Event event;
    event.kind = EventKind::kQueued;
    event.key = key;
    recorder_.Record(event);
  }

  const std::string path_;
  Recorder recorder_;
};

TEST_F(Recorded, ClosedItHoldsWhatWasRecordedAndNoMore) {
  recorder_.Open(path_, 1000, 0, 100);
  RecordOne(7);
  RecordOne(8);
  recorder_.Close();
  RecordOne(9);
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].key, 7U);
  EXPECT_EQ(events[1].key, 8U);
  EXPECT_GT(events[0].begin, 0);
  EXPECT_LE(events[0].end, events[1].begin);
  EXPECT_NE(events[0].thread, 0U);
}

TEST_F(Recorded, WhatIsNotClosedIsInTheFileAtOnce) {
  recorder_.Open(path_, 1000, 0, 100);
  RecordOne(7);
  EXPECT_EQ(Events().front().key, 7U);
  EXPECT_EQ(Events().size(), 1000U) << "there is room for all from the beginning";
}

TEST_F(Recorded, AChildLeavesItsParentsFileAlone) {
  recorder_.Open(path_, 1000, 0, 100);
  RecordOne(7);
  const pid_t child = fork();
  if (child == 0) {
    recorder_.Forget();
    RecordOne(8);
    Event layer;
    layer.kind = EventKind::kForward;
    recorder_.RecordLayer(layer);
    recorder_.Close();
    _exit(recorder_.is_open() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  RecordOne(9);
  recorder_.Close();
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].key, 9U);
}

TEST_F(Recorded, CountsEventsThatHaveNoRoom) {
  recorder_.Open(path_, 3, 0, 100);
  for (uint64_t key = 0; key < 10; ++key) RecordOne(key);
  recorder_.Close();
  EXPECT_EQ(Events().size(), 3U);
  EXPECT_EQ(recorder_.recorded(), 3U);
  EXPECT_EQ(recorder_.dropped(), 7U);
}

TEST_F(Recorded, RecordsTheStepsThatItIsAskedForAndTheExchangeBefore) {
  recorder_.Open(path_, 1000, 3, 5);
  for (uint64_t round = 0; round < 8; ++round) {
    EXPECT_EQ(recorder_.Reach(round), round > 0);
    EXPECT_FALSE(recorder_.Reach(round)) << "another key's gradient of the same step";
    RecordOne(round);
  }
  recorder_.Close();
  std::vector<uint64_t> keys, steps;
  for (const Event& event : Events()) {
    if (event.kind == EventKind::kQueued) keys.push_back(event.key);
    if (event.kind == EventKind::kStep) steps.push_back(event.round);
  }
  EXPECT_EQ(keys, (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_EQ(steps, (std::vector<uint64_t>{2, 3, 4}));
}

TEST_F(Recorded, ALayerLastsFromTheOneBeforeItButNotFromAnEarlierTrace) {
  for (int trace = 0; trace < 2; ++trace) {
    recorder_.Open(path_, 1000, 0, 100);
    for (int layer = 0; layer < 2; ++layer) {
      Event event;
      event.kind = EventKind::kForward;
      recorder_.RecordLayer(event);
    }
    recorder_.Close();
    const std::vector<Event> events = Events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].begin, events[0].end);
    EXPECT_EQ(events[1].begin, events[0].end);
  }
}

TEST_F(Recorded, AnEarlierFileOfTheSameNameKeepsWhatItHolds) {
  recorder_.Open(path_, 1000, 0, 100);
  RecordOne(7);
  std::ifstream earlier(path_, std::ios::binary | std::ios::ate);
  recorder_.Open(path_, 1000, 0, 100);
  RecordOne(8);
  recorder_.Close();
  EXPECT_EQ(Events().front().key, 8U);
  EXPECT_EQ(earlier.seekg(0, std::ios::end).tellg(), kEventsAt + sizeof(Event));
}

TEST_F(Recorded, AFileThatIsClosedKeepsNoDescriptor) {
  const auto count = [] {
    using Entries = std::filesystem::directory_iterator;
    return std::distance(Entries("/proc/self/fd"), Entries());
  };
  const auto before = count();
  for (int trace = 0; trace < 3; ++trace) {
    recorder_.Open(path_, 1000, 0, 100);
    recorder_.Close();
  }
  EXPECT_EQ(count(), before);
}

TEST_F(Recorded, RefusesAFileThatCannotBe) {
  EXPECT_THROW(recorder_.Open("/nowhere/at/all", 10, 0, 100), std::runtime_error);
  EXPECT_FALSE(recorder_.on());
}

TEST_F(Recorded, ThreadsLoseNothingWhileItIsClosed) {
  recorder_.Open(path_, 100000, 0, 100);
  std::vector<std::thread> threads;
  for (uint64_t key = 1; key <= 4; ++key) {
    threads.emplace_back([this, key] {
      for (int i = 0; i < 10000; ++i) RecordOne(key);
    });
  }
  while (recorder_.recorded() < 100) std::this_thread::yield();
  recorder_.Close();
  const uint64_t recorded = recorder_.recorded();
  for (std::thread& thread : threads) thread.join();
  const std::vector<Event> events = Events();
  EXPECT_EQ(events.size(), recorded);
  for (const Event& event : events) EXPECT_EQ(event.kind, EventKind::kQueued);
}

TEST_F(Recorded, APongTellsTheServersTime) {
  const auto wire = std::make_shared<HeldMessages>();
  Link link(wire, 3, nullptr, nullptr, nullptr, nullptr, &recorder_);
  link.Measure();
  EXPECT_TRUE(wire->empty()) << "nobody wants to know";
  recorder_.Open(path_, 1000, 0, 100);
  link.Measure();
  const Message ping = wire->TakeFirst();
  ASSERT_EQ(ping.header.type, MessageType::kPing);
  EXPECT_TRUE(link.Awaits(PongMessage(ping, 12345)));
  link.Receive(PongMessage(ping, 12345), [](const Message&) {});
  recorder_.Close();
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kClock);
  EXPECT_EQ(events[0].key, 12345U);
  EXPECT_EQ(events[0].peer, 3);
  EXPECT_EQ(events[0].begin, TimeOfPing(ping));
  EXPECT_GE(events[0].end, events[0].begin);
}

// All events of a round of a cluster's worker, counted by kind.
TEST_F(Recorded, WantsNoLayersOnceItsLastStepIsOver) {
  EXPECT_FALSE(recorder_.wants_layers());
  recorder_.Open(path_, 10, 2, 4);
  for (const uint64_t round : {1, 2, 3}) {
    recorder_.Reach(round);
    EXPECT_TRUE(recorder_.wants_layers()) << round;
  }
  recorder_.Reach(4);
  EXPECT_FALSE(recorder_.wants_layers());
}

TEST(RecordedCluster, EverySliceIsRecordedOnItsWholeWay) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + ".cluster.events";
  ClusterOptions options;
  options.workers = 2;
  options.servers = 1;
  options.slice_bytes = 4000;
  Cluster cluster(options);
  cluster.Join({10000});
  Worker& worker = cluster.worker(0);
  const size_t slices = worker.Slices(0).size();
  const auto exchange = [](int, Worker* each, uint64_t key) {
    std::vector<float> values(10000, 1.0F);
    EXPECT_EQ(Exchange(each, key, values, &values), "");
  };
  cluster.OnEveryKey(exchange);  // the first value, of which only rank 0's travels
  worker.recorder().Open(path, 10000, 0, 100);
  cluster.OnEveryKey(exchange);
  worker.recorder().Close();
  const std::string content = Read(path);
  std::vector<Event> events((content.size() - kEventsAt) / sizeof(Event));
  std::memcpy(events.data(), content.data() + kEventsAt, events.size() * sizeof(Event));
  std::map<EventKind, size_t> count;
  for (const Event& event : events) ++count[event.kind];
  for (const EventKind kind : {EventKind::kEncoded, EventKind::kQueued, EventKind::kSent,
                               EventKind::kReceived, EventKind::kWritten}) {
    EXPECT_EQ(count[kind], slices) << static_cast<int>(kind);
  }
  EXPECT_EQ(count[EventKind::kReady], 1U);
  EXPECT_EQ(count[EventKind::kPrepared], 1U);
  EXPECT_EQ(count[EventKind::kDone], 1U);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace kvstore_ext
