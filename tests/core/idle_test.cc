// Workers that run out of work: rounds go on without them until all have.
#include "keys/idle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "cluster.h"
#include "contributions.h"
#include "server/aggregator.h"
#include "server/sparse_rounds.h"

namespace kvstore_ext {
namespace {

constexpr int kRounds = 5;

// Worker r takes part in this many rounds after the first value's: 1, 3 and 5 of five.
int RoundsOf(int rank) { return 1 + 2 * rank; }

std::vector<uint64_t> Elements() { return {0, 1, 90000, 300000}; }

// Until all are idle; returns those that have missed rounds.
std::set<int> Rest(Worker* worker, bool mean = false) {
  worker->BeginIdle(mean);
  for (;;) {
    worker->AwaitDemand(1);
    if (const auto ended = worker->EndIdle()) return *ended;
  }
}

std::vector<float> Filled(uint64_t key, float value) {
  return std::vector<float>(Elements()[key], value);
}

// The sum in a round: worker r pushes 2 ** r, also where a method has no other values.
float SumOf(int round, bool mean) {
  float sum = 0;
  int pushing = 0;
  for (int rank = 0; rank < 3; ++rank) {
    if (round > RoundsOf(rank)) continue;
    sum += static_cast<float>(1 << rank);
    ++pushing;
  }
  return mean ? sum * 3 / static_cast<float>(pushing) : sum;
}

class Uneven : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(Uneven, SumsAreOfThoseWhoStillPush) {
  const std::string method = std::get<0>(GetParam());
  const bool mean = std::get<1>(GetParam());
  Cluster cluster;
  cluster.Join(Elements(), method);
  cluster.OnEveryWorker([mean](int rank, Worker* worker) {
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int round = epoch == 0 ? 0 : 1; round <= RoundsOf(rank); ++round) {
        for (uint64_t key = 0; key < Elements().size(); ++key) {
          const float own = round == 0 ? 7 : static_cast<float>(1 << rank);
          std::vector<float> output = Filled(key, 0);
          ASSERT_EQ(Exchange(worker, key, Filled(key, own), &output), "");
          const float sum = round == 0 ? 7 : SumOf(round, mean);
          const auto off = std::find_if(output.begin(), output.end(), [sum](double value) {
            return !(std::abs(value - sum) <= 1e-4 * sum);  // as NaN is, too
          });
          ASSERT_TRUE(off == output.end()) << *off << " is not " << sum << " in round " << round;
        }
      }
      EXPECT_EQ(Rest(worker, mean), (std::set<int>{0, 1}));
      for (uint64_t key = 0; key < Elements().size(); ++key) {
        EXPECT_EQ(worker->RoundsOf(key), 1U + kRounds * (epoch + 1U));
      }
    }
    worker->Leave();
  });
}

INSTANTIATE_TEST_SUITE_P(
    EveryCompression, Uneven,
    testing::Combine(testing::Values("", "terngrad clip_sigma=0 scaler_sharing=0 seed=0",
                                     "qsgd bits=8 bucket=500 norm=max seed=0 error_feedback=1"),
                     testing::Bool()));

TEST(Uneven, AnEvenEpochMissesNothing) {
  Cluster cluster;
  cluster.Join(Elements());
  cluster.OnEveryWorker([](int, Worker* worker) {
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int round = 0; round < 2; ++round) {
        for (uint64_t key = 0; key < Elements().size(); ++key) {
          std::vector<float> values = Filled(key, 1);
          ASSERT_EQ(Exchange(worker, key, values, &values), "");
        }
      }
      EXPECT_TRUE(Rest(worker).empty());
    }
  });
}

TEST(Uneven, AGradientThatCouldNotBeComputedIsMissedNoMoreOnceAllGoOn) {
  Cluster cluster;
  cluster.Join({10});
  cluster.OnEveryWorker([](int rank, Worker* worker) {
    const std::vector<float> input(10);
    std::vector<float> output(10);
    EXPECT_EQ(Exchange(worker, 0, input, &output), "");
    if (rank == 1) {
      worker->Miss(0);
    } else {
      EXPECT_EQ(Exchange(worker, 0, input, &output), "");
    }
    Rest(worker);
    EXPECT_EQ(Exchange(worker, 0, input, &output), "");
  });
}

TEST(Uneven, WhoJoinsAgainIsStillAskedForWhatItHasMissed) {
  Cluster cluster({2, 1, 150000, 20});
  cluster.Join({10});
  cluster.worker(1).BeginIdle(false);
  cluster.worker(0).MeetSparse(7, "pushed key 'rows'");
  std::optional<uint64_t> demanded;
  for (int tries = 0; tries < 100 && !demanded; ++tries) {
    cluster.worker(1).BeginIdle(false);
    demanded = cluster.worker(1).AwaitDemand(0.1);
  }
  EXPECT_EQ(demanded, std::optional<uint64_t>(7));
}

// What the job fails with when worker 1 does something while worker 0 is idle.
std::string FailureOf(const std::function<void(Worker*)>& something) {
  Cluster cluster({2, 1, 150000, 20});
  cluster.Join({10});
  std::string failure;
  cluster.OnEveryWorker([&](int rank, Worker* worker) {
    if (rank == 1) return something(worker);
    try {
      Rest(worker);
    } catch (const std::runtime_error& error) {
      failure = error.what();
    }
  });
  return failure;
}

TEST(Uneven, AFirstValueWaitsForAll) {
  const std::vector<float> input(10);
  std::vector<float> output(10);
  const std::string failure = FailureOf([&](Worker* worker) {
    worker->AwaitDemand(0.2);  // so that the other one is idle before
    Exchange(worker, 0, input, &output);
  });
  EXPECT_EQ(failure,
            "server 0: worker 0 has joined, but worker 1 initialised key 0, in which all take "
            "part: only pushes go on without those that have called store.join");
}

class Idle : public testing::TestWithParam<const char*> {};

TEST_P(Idle, PushesNothing) {
  Cluster cluster({2, 1, 150000, 20});
  cluster.Join({10}, GetParam());
  const std::vector<float> input(10);
  cluster.OnEveryWorker([&](int rank, Worker* worker) {
    std::vector<float> output(10);
    EXPECT_EQ(Exchange(worker, 0, input, &output), "");
    if (rank == 1) return;
    worker->BeginIdle(false);
    EXPECT_EQ(Exchange(worker, 0, input, &output),
              "server 0: worker 0 pushed key 0 while it waits in store.join: all stores of a "
              "process join together");
  });
}

// The second begins with a scaler.
INSTANTIATE_TEST_SUITE_P(Methods, Idle,
                         testing::Values("", "terngrad clip_sigma=0 scaler_sharing=1 seed=0"));

TEST(Uneven, WhoLeavesIsNotWaitedFor) {
  const std::string failure = FailureOf([](Worker* worker) {
    try {
      worker->Leave();
    } catch (const std::runtime_error&) {  // as the other one hears
    }
  });
  EXPECT_TRUE(failure.find("left, but worker 0") != std::string::npos) << failure;
  EXPECT_TRUE(failure.find("all workers call store.join as often") != std::string::npos);
}

TEST(Uneven, WhoLeavesWhileItIsIdleIsTold) {
  Cluster cluster({2, 1, 150000, 20});
  cluster.Join({10});
  cluster.worker(1).BeginIdle(false);
  EXPECT_THROW(cluster.worker(1).Leave(), std::runtime_error);
  EXPECT_EQ(cluster.server(0).AwaitFailure(20),
            "server 0: worker 1 has left while it waited in store.join, which it did not end");
}

TEST(Uneven, AllWantTheSameMean) {
  const std::string failure = FailureOf([](Worker* worker) {
    try {
      Rest(worker, true);
    } catch (const std::runtime_error&) {
    }
  });
  EXPECT_TRUE(failure.find("all call store.join alike") != std::string::npos) << failure;
}

TEST(Aggregator, AddsInTheOrderOfRanksAroundWhoHasNothing) {
  for (int idle = 0; idle < 4; ++idle) {
    const auto arrays = RandomContributions(idle).Gradients<float>(4, 50);
    std::vector<Numbers<float>> others;
    Aggregator aggregator(DType::kFloat32, 50, 4, true);
    for (int rank = 3; rank >= 0; --rank) {
      if (rank == idle) {
        aggregator.AddNothing(rank);
      } else {
        aggregator.Add(rank, ToBuffer(arrays[rank]), true);
        others.insert(others.begin(), arrays[rank]);
      }
    }
    ASSERT_EQ(aggregator.heard().size(), arrays.size());
    EXPECT_TRUE(SameNumbers(ToNumbers<float>(aggregator.Take()), AddedOneByOne(others)));
  }
}

TEST(SparseRounds, SayOnceHowOftenAWorkerIsBehind) {
  SparseRounds rounds;
  rounds.Begin(0, 7, 1, "pushed 1");
  rounds.Begin(1, Rounds{{7, 1}, {8, 2}});
  EXPECT_EQ(rounds.TakeBehind(0), (Rounds{{8, 2}}));
  EXPECT_EQ(rounds.MissedBy(0), "");
  rounds.Begin(1, 7, 3, "pushed 3");
  rounds.Begin(1, 7, 2, "pushed 2");  // which has been on the way for longer
  EXPECT_EQ(rounds.MissedBy(0), "pushed 3");
  EXPECT_EQ(rounds.MissedBy(1), "");
  EXPECT_EQ(rounds.TakeBehind(0), (Rounds{{7, 2}}));
  EXPECT_EQ(rounds.TakeBehind(0), Rounds());
}

TEST(IdleNotices, ComeOutAsTheyWentIn) {
  const IdleNotice notice{true, {{1, 2}, {1ULL << 63, 4}}};
  const IdleNotice read = IdleNotice::Unpack(notice.Pack());
  EXPECT_EQ(read.mean, notice.mean);
  EXPECT_EQ(read.sparse, notice.sparse);
  const Resumption resumption{{0, 2}, {{5, 6}, {9, 1}}};
  const Resumption again = Resumption::Unpack(resumption.Pack());
  EXPECT_EQ(again.missed, resumption.missed);
  EXPECT_EQ(again.rounds, resumption.rounds);
  for (const size_t bytes : {0, 1, 8, 16, 32}) {
    EXPECT_THROW(Resumption::Unpack(resumption.Pack().substr(0, bytes)), std::invalid_argument);
  }
}

}  // namespace
}  // namespace kvstore_ext
