// A stranger in the middle of a round, who takes a worker's number: the round comes to its end.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "cluster.h"
#include "forged.h"
#include "keys/idle.h"

namespace kvstore_ext {
namespace {

constexpr uint64_t kElements = 10;
constexpr int kStranger = 1;  // the worker whose number a stranger takes

class Rounds : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.Join({kElements});
    RunRound(1);
  }

  static ClusterOptions OneServer() {
    ClusterOptions options;
    options.servers = 1;
    return options;
  }

  // Begins a round of a worker that pushes these values.
  std::future<std::string> Begin(int rank, float value) {
    values_[rank].assign(kElements, value);
    return kvstore_ext::Begin(&cluster_.worker(rank), 0, values_[rank], &values_[rank]);
  }

  void RunRound(float value) {
    std::vector<std::future<std::string>> ends;
    for (int rank = 0; rank < kWorkers; ++rank) ends.push_back(Begin(rank, value));
    for (auto& end : ends) EXPECT_EQ(end.get(), "");
  }

  void ExpectAll(float value) {
    for (const auto& values : values_) EXPECT_EQ(values, std::vector<float>(kElements, value));
  }

  static constexpr int kWorkers = 3;
  std::vector<float> values_[kWorkers];
  Cluster cluster_{OneServer()};  // last: it uses the above until it ends
};

TEST_F(Rounds, NobodyRestsWhoIsInOne) {
  std::vector<std::future<std::string>> ends;
  ends.push_back(Begin(kStranger, 2));
  for (const MessageType type : {MessageType::kIdle, MessageType::kLeave}) {
    cluster_.ForgeFromWorker(kStranger, 0, WithText(Of(type), IdleNotice().Pack()));
  }
  ends.push_back(Begin(0, 2));
  ends.push_back(Begin(2, 2));
  for (auto& end : ends) EXPECT_EQ(end.get(), "");
  ExpectAll(6);
}

TEST_F(Rounds, NobodyPushesIntoOneThatTheOptimizerHas) {
  cluster_.server(0).UseOptimizer(0);
  std::vector<std::future<std::string>> ends;
  for (int rank = 0; rank < kWorkers; ++rank) ends.push_back(Begin(rank, 2));
  Update update;
  ASSERT_TRUE(cluster_.server(0).NextUpdate(&update));
  const Message forged = With(Of(MessageType::kPush, 0, 1), kElements * sizeof(float));
  cluster_.ForgeFromWorker(kStranger, 0, forged);
  // Once that has been looked at.
  cluster_.worker(kStranger).Meet("come to barrier 1", true);
  for (int rank : {0, 2}) cluster_.worker(rank).Meet("come to barrier 1", false);
  ASSERT_TRUE(cluster_.worker(kStranger).AwaitMeeting("come to barrier 1", 20));
  cluster_.server(0).Updated(update);
  for (auto& end : ends) EXPECT_EQ(end.get(), "");
  std::thread updating([this] {
    Update next;
    while (cluster_.server(0).NextUpdate(&next)) {
      std::memcpy(next.value.data.get(), next.gradient.data.get(), next.value.size);
      cluster_.server(0).Updated(next);
    }
  });
  RunRound(2);
  ExpectAll(6);
  cluster_.server(0).EndWaits();
  updating.join();
}

// It would push nothing for one round too many, once it is idle.
TEST_F(Rounds, AreToldToNobodyWhoIsNotIdle) {
  cluster_.ForgeFromServer(0, 0, Of(MessageType::kSparse, 7));
  EXPECT_EQ(cluster_.AwaitRefused(1), 1U);
  cluster_.worker(0).BeginIdle(false);
  EXPECT_FALSE(cluster_.worker(0).AwaitDemand(0.2).has_value());
}

TEST_F(Rounds, AreForgottenOnceNobodyIsIdle) {
  Worker& idle = cluster_.worker(0);
  idle.BeginIdle(false);
  cluster_.ForgeFromServer(0, 0, Of(MessageType::kSparse, 7, uint64_t{1} << 62));
  EXPECT_EQ(idle.AwaitDemand(20), std::optional<uint64_t>(7));
  for (int rank : {1, 2}) cluster_.worker(rank).BeginIdle(false);
  bool resumed = false;
  for (int i = 0; i < 2000 && !resumed; ++i) {
    resumed = idle.EndIdle().has_value();
    if (!resumed) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(resumed);
  idle.BeginIdle(false);
  EXPECT_FALSE(idle.AwaitDemand(0.2).has_value());
}

TEST_F(Rounds, AreToldToAnIdleWorkerAtOnceHoweverManyThereAre) {
  Worker& idle = cluster_.worker(0);
  idle.BeginIdle(false);
  Message forged = WithText(Of(MessageType::kMeet, 7, uint64_t{1} << 62), "pushed key 7");
  cluster_.ForgeFromWorker(kStranger, 0, forged);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(idle.AwaitDemand(20), std::optional<uint64_t>(7));
  std::vector<std::future<std::string>> ends;
  for (int rank : {1, 2}) ends.push_back(Begin(rank, 2));
  for (auto& end : ends) EXPECT_EQ(end.get(), "");
}

// What would be kept until the rest of it comes, which never does.
Message PartOf(MessageType type, uint64_t round) {
  Message part = With(Of(type, 0, round), sizeof(float));
  part.header.whole = kElements * sizeof(float);
  return part;
}

TEST_F(Rounds, AWorkerKeepsNoPartOfOneThatItDoesNotWaitFor) {
  std::vector<std::future<std::string>> ends;
  ends.push_back(Begin(0, 2));
  for (const uint64_t round : {0U, 2U, 3U}) {
    cluster_.ForgeFromServer(0, 0, PartOf(MessageType::kResult, round));
  }
  EXPECT_EQ(cluster_.AwaitRefused(3), 3U);
  for (int rank : {1, 2}) ends.push_back(Begin(rank, 2));
  for (auto& end : ends) EXPECT_EQ(end.get(), "");
  ExpectAll(6);
}

TEST_F(Rounds, AServerKeepsNoPartOfOneThatAnIdleWorkerWouldNotBeIn) {
  cluster_.worker(kStranger).BeginIdle(false);
  for (const uint64_t round : {2U, 3U}) {
    cluster_.ForgeFromWorker(kStranger, 0, PartOf(MessageType::kPush, round));
  }
  EXPECT_EQ(cluster_.AwaitRefused(2), 2U);
  std::vector<std::future<std::string>> ends;
  for (int rank : {0, 2}) ends.push_back(Begin(rank, 2));
  for (auto& end : ends) EXPECT_EQ(end.get(), "");
  for (int rank : {0, 2}) EXPECT_EQ(values_[rank], std::vector<float>(kElements, 4));
}

}  // namespace
}  // namespace kvstore_ext
