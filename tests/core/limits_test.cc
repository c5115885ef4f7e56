// Who is dead, and who is only slow.
#include "support/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cluster.h"

namespace kvstore_ext {
namespace {

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

ClusterOptions WithSilence(double seconds) {
  ClusterOptions options;
  options.limits.silence = seconds;
  options.limits.patience = Limits::kForEver;
  return options;
}

TEST(Limits, ASilentWorkerIsDeadAndWhatItIsWaitedForIsSaid) {
  Cluster cluster(WithSilence(0.5));
  cluster.Join({});
  cluster.worker(0).Meet("come to barrier 1", true);
  cluster.worker(2).Meet("come to barrier 1", true);
  EXPECT_FALSE(cluster.worker(2).AwaitMeeting("come to barrier 1", 0.1));
  cluster.CutWorker(1, true);
  const std::string reason =
      "server 0: worker 1 has not been heard of for 0.5 s, nor come to barrier 1, which workers 0 "
      "and 2 did (worker 1 on host1)";
  EXPECT_EQ(cluster.server(0).AwaitFailure(20), reason);
  EXPECT_EQ(cluster.server(1).AwaitFailure(20), reason) << "which waits a moment for it";
}

TEST(Limits, ASilentServerIsDead) {
  Cluster cluster(WithSilence(0.5));
  cluster.Join({});
  cluster.CutServer(1, true);
  const std::string reason = cluster.server(0).AwaitFailure(20);
  EXPECT_NE(reason.find(": no sign of life from server 1, within 0.5 s (server 1 on "),
            std::string::npos)
      << reason;
}

// The last rank's signs of life, which there is in one role alone, find no way once it is lost.
ClusterOptions WithoutWay(int workers, int servers, const std::atomic<bool>* lost) {
  ClusterOptions options;
  options.workers = workers;
  options.servers = servers;
  options.damage = [lost, last = std::max(workers, servers) - 1](Message* message) {
    const bool is_sign = message->header.type == MessageType::kCredit;
    if (*lost && is_sign && message->peer == last) throw std::runtime_error("there is no way");
  };
  return options;
}

TEST(Limits, AWorkersSignOfLifeThatCannotBeSentEndsTheJob) {
  std::atomic<bool> lost{false};
  Cluster cluster(WithoutWay(3, 2, &lost));
  cluster.Join({});
  lost = true;
  EXPECT_EQ(cluster.server(0).AwaitFailure(20), "worker 2: there is no way");
}

TEST(Limits, AServersSignOfLifeThatCannotBeSentEndsTheJob) {
  std::atomic<bool> lost{false};
  Cluster cluster(WithoutWay(1, 2, &lost));
  cluster.Join({});
  lost = true;
  // It has not been told its rank.
  EXPECT_EQ(cluster.server(1).AwaitFailure(20), "server 0: there is no way");
}

TEST(Limits, AnUpdateThatTakesTooLongIsSaidToHaveBegunLate) {
  ClusterOptions options;
  options.workers = 2;
  options.servers = 1;
  options.limits.patience = 3;
  Cluster cluster(options);
  cluster.Join({10});
  std::vector<float> values[2] = {std::vector<float>(10, 1.0F), std::vector<float>(10, 1.0F)};
  cluster.OnEveryWorker([&](int rank, Worker* worker) {
    EXPECT_EQ(Exchange(worker, 0, values[rank], &values[rank]), "");
  });
  cluster.server(0).UseOptimizer(0);
  std::vector<std::future<std::string>> ends;
  for (int rank = 0; rank < 2; ++rank) {
    Sleep(2 * rank);
    ends.push_back(Begin(&cluster.worker(rank), 0, values[rank], &values[rank]));
  }
  const std::string failure = cluster.server(0).AwaitFailure(20);
  const std::string begin =
      "server 0: the optimizer has not updated key 0, round 1, whose sum it has had for ";
  ASSERT_EQ(failure.find(begin), 0u) << failure;
  EXPECT_LT(std::stoi(failure.substr(begin.size())), 3) << "since the last push, not the first";
  EXPECT_NE(failure.find(" s, within 3 s"), std::string::npos) << failure;
}

// As one on MXNet's engine does, which would swallow what it throws.
TEST(Limits, AnUpdateThatCannotBeSentEndsTheJob) {
  std::atomic<bool> lost{false};
  ClusterOptions options;
  options.workers = 2;
  options.servers = 1;
  options.damage = [&lost](Message* message) {
    const bool is_result = message->header.type == MessageType::kResult;
    if (lost && is_result) throw std::runtime_error("there is no way");
  };
  Cluster cluster(options);
  cluster.Join({10});
  std::vector<float> values[2] = {std::vector<float>(10, 1.0F), std::vector<float>(10, 1.0F)};
  const auto begin = [&](int rank) {
    return Begin(&cluster.worker(rank), 0, values[rank], &values[rank]);
  };
  std::vector<std::future<std::string>> ends;
  for (int rank = 0; rank < 2; ++rank) ends.push_back(begin(rank));
  for (auto& end : ends) EXPECT_EQ(end.get(), "");
  cluster.server(0).UseOptimizer(0);
  ends.clear();
  for (int rank = 0; rank < 2; ++rank) ends.push_back(begin(rank));
  Update update;
  ASSERT_TRUE(cluster.server(0).NextUpdate(&update));
  lost = true;
  EXPECT_NO_THROW(cluster.server(0).Updated(update));
  EXPECT_EQ(cluster.server(0).AwaitFailure(20), "server 0: there is no way");
  EXPECT_EQ(ends[1].get(), "server 0: there is no way");
}

// As where something on the way resets a connection.
TEST(Limits, APushThatIsLostEndsTheJobAndItsWorkerIsNamed) {
  Cluster cluster(WithSilence(1));
  cluster.Join({10});
  std::vector<float> values[3];
  std::vector<std::future<std::string>> ends;
  for (int rank = 0; rank < 3; ++rank) {
    values[rank].resize(10, 1.0F);
    cluster.CutWorker(rank, rank == 1);
    ends.push_back(Begin(&cluster.worker(rank), 0, values[rank], &values[rank]));
    Sleep(0.2);
    cluster.CutWorker(rank, false);
  }
  for (auto& end : ends) {
    const std::string reason = end.get();
    EXPECT_NE(reason.find(": 1 message of worker 1 did not arrive within 1 s, although later signs "
                          "of life did: a connection was reset on its way (worker 1 on host1)"),
              std::string::npos)
        << reason;
  }
}

TEST(Limits, AResultThatIsLostEndsTheJobAndItsServerIsNamed) {
  Cluster cluster(WithSilence(1));
  cluster.Join({10});
  std::vector<float> values[3] = {std::vector<float>(10), std::vector<float>(10),
                                  std::vector<float>(10)};
  std::vector<std::future<std::string>> ends;
  cluster.CutServer(0, true);
  cluster.CutServer(1, true);
  for (int rank = 0; rank < 3; ++rank) {
    ends.push_back(Begin(&cluster.worker(rank), 0, values[rank], &values[rank]));
  }
  Sleep(0.4);
  cluster.CutServer(0, false);
  cluster.CutServer(1, false);
  for (auto& end : ends) {
    const std::string reason = end.get();
    EXPECT_NE(reason.find(": 1 message of server "), std::string::npos) << reason;
    EXPECT_NE(reason.find(" did not arrive within 1 s"), std::string::npos) << reason;
  }
}

TEST(Limits, SignsOfLifeThatAreLostEndNothing) {
  Cluster cluster(WithSilence(1));
  cluster.Join({10});
  const auto train = [&cluster] {
    cluster.OnEveryKey([](int, Worker* worker, uint64_t key) {
      std::vector<float> value(10);
      EXPECT_EQ(Exchange(worker, key, value, &value), "");
    });
  };
  train();
  cluster.CutWorker(1, true);
  Sleep(0.4);
  cluster.CutWorker(1, false);
  EXPECT_EQ(cluster.server(0).AwaitFailure(3), "");
  train();
}

TEST(Limits, WhoLosesSeveralNamesThemTogether) {
  Limits limits;
  limits.silence = 20;
  const auto dead = [&limits](const std::map<int, double>& silent) {
    const Limits::Loss loss = limits.LossAmong(silent);
    return loss.settled ? loss.dead : std::set<int>();
  };
  EXPECT_EQ(dead({{0, 0.3}, {1, 20}}), std::set<int>());
  EXPECT_EQ(dead({{0, 18}, {1, 20.1}}), std::set<int>({1}));
  EXPECT_EQ(dead({{0, 19.1}, {1, 20.1}}), std::set<int>()) << "0 may follow at once";
  EXPECT_EQ(dead({{0, 20.1}, {1, 21.1}}), std::set<int>({0, 1}));
  EXPECT_EQ(dead({{0, 19.9}, {1, 21.6}}), std::set<int>({1})) << "that was a moment";
}

TEST(Limits, AWorkerThatIsAliveIsWaitedFor) {
  Cluster cluster(WithSilence(0.5));
  cluster.Join({});
  cluster.worker(0).Meet("come to barrier 1", true);
  EXPECT_FALSE(cluster.worker(0).AwaitMeeting("come to barrier 1", 2.5)) << "five times as long";
  for (int rank : {1, 2}) cluster.worker(rank).Meet("come to barrier 1", false);
  EXPECT_TRUE(cluster.worker(0).AwaitMeeting("come to barrier 1", 20));
}

TEST(Limits, OfThoseWhoWaitTheFirstSaysForWhom) {
  testing::internal::CaptureStderr();
  {
    Cluster cluster(WithSilence(0.5));
    cluster.Join({});
    for (int rank : {1, 2}) cluster.worker(rank).Meet("come to barrier 1", true);
    EXPECT_FALSE(cluster.worker(1).AwaitMeeting("come to barrier 1", 3));
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("kvstore_ext worker 1 waits: worker 0 has not come to barrier 1, which "
                      "workers 1 and 2 did, for "),
            0u)
      << said;
  EXPECT_NE(said.find(" s (worker 0 on host0); there are signs of life, and the option patience "
                      "sets no limit"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("kvstore_ext worker 2"), std::string::npos) << said;
}

TEST(Limits, ItIsSaidAgainAsLongAsSomebodyWaits) {
  ClusterOptions options = WithSilence(0.5);  // and so after 1 s, in place of a minute
  options.servers = 1;
  Cluster cluster(options);
  cluster.Join({});
  for (int rank : {1, 2}) cluster.worker(rank).Meet("come to barrier 1", true);
  const std::string notice = "kvstore_ext worker 1 waits: worker 0 has not come to barrier 1";
  int notices = 0;
  for (int i = 0; i < 200 && notices < 3; ++i) {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(cluster.worker(1).AwaitMeeting("come to barrier 1", 0.1));
    const std::string said = testing::internal::GetCapturedStderr();
    for (size_t at = 0; (at = said.find(notice, at)) != std::string::npos; ++at) ++notices;
  }
  EXPECT_GE(notices, 3);
}

TEST(Limits, OfWorkersThatWaitForEachOtherBothAreNamed) {
  testing::internal::CaptureStderr();
  {
    ClusterOptions options = WithSilence(0.5);
    options.servers = 1;
    Cluster cluster(options);
    cluster.Join({10});
    cluster.OnEveryKey([](int, Worker* worker, uint64_t key) {
      std::vector<float> value(10);
      EXPECT_EQ(Exchange(worker, key, value, &value), "");
    });
    for (int rank : {1, 2}) cluster.worker(rank).Meet("come to barrier 1", true);
    std::thread pushing([&cluster] {
      std::vector<float> gradient(10);
      EXPECT_NE(Exchange(&cluster.worker(0), 0, gradient, &gradient), "");
    });
    Sleep(3);
    cluster.worker(0).Abort("that was long enough");
    pushing.join();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* fact : {"workers 1 and 2 have not pushed key 0, round 1, which worker 0 did",
                           "worker 0 has not come to barrier 1, which workers 1 and 2 did"}) {
    EXPECT_NE(said.find(fact), std::string::npos) << said;
  }
}

TEST(Limits, AServerThatIsBusyForLongIsSaid) {
  std::string said;
  {
    Cluster cluster(WithSilence(1));  // in which no Python answers
    cluster.Join({});
    cluster.worker(2).Ask(1, "", {});
    for (int i = 0; i < 200 && said.empty(); ++i) {
      testing::internal::CaptureStderr();
      Sleep(0.1);
      said = testing::internal::GetCapturedStderr();
    }
    EXPECT_EQ(cluster.server(1).AwaitFailure(0), "");
  }
  EXPECT_EQ(said.find("kvstore_ext worker 2 waits: server 1 has not answered a question"), 0u)
      << said;
}

TEST(Limits, WhatTravelsThroughMXNetsOwnStoreExcusesSilence) {
  Cluster cluster(WithSilence(0.4));
  cluster.Join({});
  cluster.worker(1).StockLeaves({60'000'000, 60'000'000});
  for (int rank : {0, 2}) cluster.worker(rank).BeginPull("answered a pull", {60'000'000, 0});
  Sleep(0.1);
  cluster.CutWorker(1, true);
  cluster.CutServer(0, true);
  EXPECT_EQ(cluster.server(1).AwaitFailure(1.5), "") << "not even from worker 1, which is cut off";
}

TEST(Limits, WhatIsPulledFromOneServerAgainAndAgainDoesNotExcuseAnother) {
  Cluster cluster(WithSilence(0.4));
  cluster.Join({});
  cluster.CutServer(1, true);
  const std::vector<int64_t> bytes = {60'000'000, 0};
  std::string reason;
  for (int i = 0; i < 2000 && reason.empty(); ++i) {
    for (int rank : {0, 1, 2}) {
      Worker& worker = cluster.worker(rank);
      worker.EndPull(worker.BeginPull("answered a pull", bytes), bytes);
    }
    reason = cluster.server(0).AwaitFailure(0.01);
  }
  EXPECT_NE(reason.find(": no sign of life from server 1, within 0.4 s"), std::string::npos)
      << reason;
}

TEST(Limits, WhoWasStoppedHimselfHasNotMissedAnybody) {
  Awake awake(0.2);
  const double begin = awake.Since();
  Sleep(0.01);
  EXPECT_EQ(awake.Since(), begin);
  Sleep(0.3);
  const double since = awake.Since();
  EXPECT_GE(since, begin + 0.3);
  EXPECT_EQ(awake.Since(), since);
}

}  // namespace
}  // namespace kvstore_ext
