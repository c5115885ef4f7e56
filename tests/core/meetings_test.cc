#include "server/meetings.h"

#include <gtest/gtest.h>

#include "cluster.h"

namespace kvstore_ext {
namespace {

TEST(Meetings, AreOverWhenAllHaveCome) {
  const Meetings::About barrier(0, "come to barrier 1"), round(3, "pushed key 1, round 1");
  Meetings meetings(3);
  EXPECT_EQ(meetings.Come(barrier, 2, true, 5), std::set<int>());
  EXPECT_EQ(meetings.Come(barrier, 2, true, 6), std::set<int>()) << "came twice";
  EXPECT_EQ(meetings.Come(round, 2, false, 7), std::set<int>());
  EXPECT_EQ(meetings.Come(barrier, 0, false, 8), std::set<int>());
  EXPECT_EQ(meetings.open().at(barrier).present, (std::set<int>{0, 2}));
  EXPECT_EQ(meetings.open().at(barrier).since, 5);
  EXPECT_EQ(meetings.Come(barrier, 1, true, 9), (std::set<int>{1, 2}));
  EXPECT_EQ(meetings.open().count(barrier), 0u);
  EXPECT_EQ(meetings.open().count(round), 1u);
}

TEST(Meetings, OfTwoStoresKeysOfOneNameAreTwo) {
  ClusterOptions options;
  options.limits.patience = 0.5;
  Cluster cluster(options);
  cluster.Join({});
  for (int worker : {0, 1, 2}) {
    for (uint64_t number : {1, 100000}) {
      cluster.worker(worker).MeetSparse(number, "pushed key 'rows'");
    }
  }
  EXPECT_EQ(cluster.server(0).AwaitFailure(2), "");
}

TEST(Meetings, OfSparseKeysAreNamedByTheirRound) {
  ClusterOptions options;
  options.limits.patience = 0.5;
  Cluster cluster(options);
  cluster.Join({});
  for (int worker : {0, 1, 2, 0, 2}) cluster.worker(worker).MeetSparse(1, "pushed key 'rows'");
  EXPECT_EQ(cluster.server(0).AwaitFailure(20).find(
                "server 0: worker 1 has not pushed key 'rows', round 2, which workers 0 and 2 did"),
            0u);
}

TEST(Meetings, LetNobodyGoOnBeforeAllHaveCome) {
  Cluster cluster;
  cluster.Join({});
  cluster.worker(0).Meet("come to barrier 1", true);
  cluster.worker(1).Meet("come to barrier 1", true);
  EXPECT_FALSE(cluster.worker(0).AwaitMeeting("come to barrier 1", 0.01));
  cluster.worker(2).Meet("come to barrier 1", false);
  EXPECT_TRUE(cluster.worker(0).AwaitMeeting("come to barrier 1", 20));
  EXPECT_TRUE(cluster.worker(1).AwaitMeeting("come to barrier 1", 20));
}

TEST(Meetings, NameWhoDoesNotCome) {
  ClusterOptions options;
  options.limits.patience = 0.5;
  Cluster cluster(options);
  cluster.Join({});
  cluster.worker(0).Meet("pushed key 'rows', round 4", false);
  cluster.worker(2).Meet("pushed key 'rows', round 4", false);
  EXPECT_EQ(
      cluster.server(1).AwaitFailure(20),
      "server 0: worker 1 has not pushed key 'rows', round 4, which workers 0 and 2 did, "
      "within 0.5 s (worker 1 on host1): do all workers have the same number of batches? With "
      "store.joined() they need not");
  EXPECT_THROW(cluster.worker(0).AwaitMeeting("come to barrier 1", 20), std::runtime_error);
}

TEST(Meetings, FailAtOnceWhenSomebodyHasLeft) {
  Cluster cluster;
  cluster.Join({});
  cluster.OnEveryWorker([](int rank, Worker* worker) {
    if (rank == 1) {
      EXPECT_THROW(worker->Leave(), std::runtime_error);
      return;
    }
    worker->Meet("come to barrier 1", true);
    EXPECT_THROW(worker->AwaitMeeting("come to barrier 1", 20), std::runtime_error);
  });
  EXPECT_NE(cluster.server(0).AwaitFailure(20).find("worker 1 has left, but"), std::string::npos);
}

TEST(Meetings, EndTheJobAtOnceWhenSomebodyIsIdle) {
  Cluster cluster;
  cluster.Join({});
  cluster.worker(0).Meet("pushed key 'rows', round 1", false);
  cluster.worker(1).BeginIdle(false);
  EXPECT_EQ(cluster.server(0).AwaitFailure(0.2), "") << "it is told to push nothing";
  cluster.worker(2).Meet("come to barrier 1", true);
  EXPECT_EQ(cluster.server(1).AwaitFailure(20),
            "server 0: worker 1 has joined, but worker 2 has come to barrier 1, in which all take "
            "part: only pushes go on without those that have called store.join");
}

}  // namespace
}  // namespace kvstore_ext
