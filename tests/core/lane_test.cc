// Workers and servers of the lane together: rounds of many keys at a time, and their end.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "cluster.h"
#include "transport/window.h"

namespace kvstore_ext {
namespace {

constexpr uint64_t kKeys = 8;

// From none to a few slices, of which those above 75,000 bytes travel in parts.
std::vector<uint64_t> Elements() {
  std::vector<uint64_t> elements;
  for (uint64_t key = 0; key < kKeys; ++key) elements.push_back(key * key * 1370);
  return elements;
}

// What every method sends as it is: each element as large as the others, on all workers.
float EvenValueOf(size_t i) { return i % 3 == 0 ? -4.0F : 4.0F; }

float ValueOf(size_t i) { return static_cast<float>(i % 1000); }

class Lane : public testing::TestWithParam<const char*> {
 protected:
  static std::string Compression() { return GetParam(); }

  // A worker's gradient, or the sum of gradients, as a multiple of the same values.
  static std::vector<float> Values(uint64_t key, float factor) {
    std::vector<float> values(Elements()[key]);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = factor * (Compression().empty() ? ValueOf(i) : EvenValueOf(i));
    }
    return values;
  }
};

TEST_P(Lane, EveryWorkerGetsTheSumOfEveryRound) {
  Cluster cluster;
  cluster.Join(Elements(), Compression());
  cluster.OnEveryKey([](int rank, Worker* worker, uint64_t key) {
    const bool plain = Compression().empty();
    const std::vector<float> input = Values(key, plain ? static_cast<float>(rank + 1) : 1);
    const std::vector<float> first = Values(key, 1);  // rank 0's
    const std::vector<float> sum = Values(key, plain ? 1 + 2 + 3 : 3);
    std::vector<float> output(input.size());
    for (int round = 0; round < 8; ++round) {
      EXPECT_EQ(Exchange(worker, key, input, &output), "");
      EXPECT_TRUE(output == (round == 0 ? first : sum)) << "key " << key << " in round " << round;
    }
  });
  cluster.OnEveryWorker([](int, Worker* worker) { worker->Leave(); });
}

TEST_P(Lane, AnAbortEndsEveryOperationEverywhere) {
  // A failed operation's input may still be on its way, so it lives longer than the cluster.
  std::vector<std::vector<float>> inputs;
  for (const uint64_t elements : Elements()) inputs.emplace_back(elements, 1.0F);
  Cluster cluster;
  cluster.Join(Elements(), Compression());
  std::thread aborting([&cluster] { cluster.worker(2).Abort("as the test wants"); });
  cluster.OnEveryKey([&inputs](int, Worker* worker, uint64_t key) {
    std::vector<float> output(inputs[key].size());
    std::string error;
    while (error.empty()) error = Exchange(worker, key, inputs[key], &output);
    EXPECT_EQ(error, "as the test wants");
  });
  aborting.join();
}

TEST(Windows, GetSmallerOnceTrainingSendsLittleWhileItWaits) {
  std::mutex mutex;
  std::vector<Window> windows;
  ClusterOptions options;
  options.slice_bytes = kLeastPart;
  options.damage = [&](Message* message) {
    if (message->header.type != MessageType::kWindow) return;
    std::lock_guard<std::mutex> lock(mutex);
    windows.push_back(Window::Unpack(message->text));
  };
  Cluster cluster(options);
  cluster.Join({1, 1});
  cluster.OnEveryWorker([](int, Worker* worker) {
    std::vector<float> value(1);
    for (int round = 0; round < 8; ++round) {
      for (const uint64_t key : {0, 1}) EXPECT_EQ(Exchange(worker, key, value, &value), "");
    }
  });
  cluster.OnEveryWorker([](int, Worker* worker) { worker->Leave(); });
  std::lock_guard<std::mutex> lock(mutex);
  ASSERT_FALSE(windows.empty());
  EXPECT_EQ(windows.front().bytes, 4 * kLeastPart);
  EXPECT_EQ(windows.back().bytes, 2 * kLeastPart);
}

TEST(SlimLane, ACoreOfKeysThatAreNeverPushedIsNotWaitedForForever) {
  Limits limits;
  limits.patience = 0.2;
  SlimServer server(limits);
  try {
    server.AwaitSelection(0, 4, 1);
    FAIL() << "nothing has been pushed";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "a core cannot be selected: round 4 of key ? is not complete within 0.2 s; keys "
                 "that are never pushed belong into the option exclude");
  }
}

TEST(Questions, AServerThatDoesNotAnswerIsNamed) {
  ClusterOptions options;
  options.limits.patience = 0.2;
  Cluster cluster(options);  // in which no Python answers
  cluster.Join({});
  Worker& worker = cluster.worker(0);
  const uint64_t question = worker.Ask(1, "", {});
  EXPECT_FALSE(worker.AwaitAnswer(question, 0.01)) << "it may still come";
  try {
    worker.AwaitAnswer(question);
    FAIL() << "nobody can have answered";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "worker 0: within 0.2 s server 1 has not answered a question");
  }
}

TEST(Questions, AnAnswerThatComesTooLateIsNoStrangers) {
  constexpr int kAsked = 2;
  ClusterOptions options;
  options.limits.patience = 0.2;
  Cluster cluster(options);  // in which no Python answers
  cluster.Join({});
  Worker& worker = cluster.worker(0);
  const auto answer = [&cluster](uint64_t question) {
    cluster.ForgeFromServer(1, 0, QuestionMessage(MessageType::kAnswer, question, "{}", {}));
  };
  const uint64_t late = worker.Ask(1, "", {});
  EXPECT_THROW(worker.AwaitAnswer(late), std::runtime_error);
  const uint64_t given_up = worker.Ask(1, "", {});
  worker.GiveUp(given_up);
  answer(late);
  answer(given_up);
  cluster.ForgeFromServer(0, 0, ControlMessage(MessageType::kMet, "come to barrier 1"));
  ASSERT_TRUE(worker.AwaitMeeting("come to barrier 1", 20));
  EXPECT_FALSE(worker.IsAnswered(late));
  EXPECT_FALSE(worker.IsAnswered(given_up));
  for (const uint64_t question : {late, given_up}) answer(question);
  EXPECT_EQ(cluster.AwaitRefused(kAsked), kAsked) << "those that come again were not asked";
}

TEST(Questions, AnAnswerMayBeThereBeforeItIsAwaited) {
  Cluster cluster;  // in which no Python answers
  cluster.Join({});
  Worker& worker = cluster.worker(0);
  const uint64_t question = worker.Ask(1, "", {});
  EXPECT_FALSE(worker.IsAnswered(question));
  cluster.ForgeFromServer(1, 0, QuestionMessage(MessageType::kAnswer, question, "{}", {}));
  cluster.ForgeFromServer(0, 0, ControlMessage(MessageType::kMet, "come to barrier 1"));
  ASSERT_TRUE(worker.AwaitMeeting("come to barrier 1", 20));
  EXPECT_TRUE(worker.IsAnswered(question));
  EXPECT_EQ(worker.AwaitAnswer(question)->text, "{}");
  EXPECT_FALSE(worker.IsAnswered(question));
}

INSTANTIATE_TEST_SUITE_P(EveryCompression, Lane,
                         testing::Values("", "terngrad clip_sigma=0 scaler_sharing=1 seed=0",
                                         "qsgd bits=8 bucket=500 norm=max seed=0 error_feedback=1",
                                         "signsgd scale=12 seed=0"));

// Every fourth element is in the core: it is larger than the others by one, and stays so.
float SlimValueOf(size_t i) { return static_cast<float>(i % 4 + 1); }

// Rank 0's part in what CoreSelector does in Python: chooses what is above a size.
void SelectCores(Cluster* cluster, uint64_t selections, uint64_t rounds) {
  std::map<int, size_t> slices;  // by server
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (const Slice& slice : cluster->worker(0).Slices(key)) ++slices[slice.server];
  }
  for (uint64_t selection = 0; selection < selections; ++selection) {
    const float above = 3.5F + static_cast<float>(selection * rounds);
    uint32_t bits;
    std::memcpy(&bits, &above, sizeof bits);
    for (const auto& [rank, count] : slices) {
      SlimServer& server = cluster->slim_server(rank);
      const auto chosen = server.AwaitSelection(0, selection * rounds, count);
      chosen->Sample(1, 1);
      chosen->Divide(Bracket());
      server.SetCores(selection, chosen->Choose(bits, {}));
    }
  }
}

TEST(SlimLane, TheCoreOfAllWorkersStaysTheSame) {
  Cluster cluster;
  // A core each 3 rounds, a round late.
  cluster.Join(Elements(),
               "slim_dp alpha=0.5 beta=0.25 q=3 core_delay=1 server_lr=1 seed=0 explorer=seed "
               "explorer_mean=pushed");
  size_t elements = 0;
  for (const uint64_t of_key : Elements()) elements += of_key;
  cluster.OnEveryWorker([&cluster, elements](int rank, Worker*) {
    cluster.slim_model(rank).SetSizes(elements / 4, elements / 2);
  });
  std::thread selecting([&cluster] { SelectCores(&cluster, 4, 3); });
  cluster.OnEveryKey([](int, Worker* worker, uint64_t key) {
    std::vector<float> local(Elements()[key]);
    for (size_t i = 0; i < local.size(); ++i) local[i] = SlimValueOf(i);
    for (int round = 0; round < 11; ++round) {
      if (round > 0) {
        for (float& value : local) value += 1;
      }
      EXPECT_EQ(Exchange(worker, key, local, &local), "");
      size_t wrong = 0;
      for (size_t i = 3; i < local.size(); i += 4) {
        wrong += !(std::fabs(local[i] - SlimValueOf(i) - round) < 1e-3);
      }
      EXPECT_EQ(wrong, 0U) << "elements of the core of key " << key << " in round " << round;
    }
  });
  selecting.join();
}

// As the paper of TernGrad clips gradients.
TEST(SlimLane, AWorkerClipsItsUpdateAtItsOwnLimitAlsoWhereAnothersScalerIsLarger) {
  constexpr size_t kLength = 10000, kApart = 100;
  std::vector<float> locals[2];
  ClusterOptions options;
  options.workers = 2;
  options.servers = 1;
  Cluster cluster(options);
  cluster.Join({kLength},
               "slim_dp alpha=1 beta=1 q=1000 core_delay=0 server_lr=1 seed=0 explorer=seed "
               "explorer_mean=all values: terngrad clip_sigma=2.5 scaler_sharing=1 seed=0");
  cluster.OnEveryWorker([&](int rank, Worker* worker) {
    cluster.slim_model(rank).SetSizes(kLength, kLength);
    std::vector<float>& local = locals[rank];
    local.assign(kLength, 0);
    EXPECT_EQ(Exchange(worker, 0, local, &local), "");
    for (size_t i = 0; i < kLength; ++i) {
      const bool is_large = (i % kApart == 0) == (rank == 0);
      const float size = is_large ? 1.0F : rank == 0 ? 0.01F : 0.0F;
      local[i] = i / kApart % 2 == 0 ? size : -size;
    }
    EXPECT_EQ(Exchange(worker, 0, local, &local), "");
  });
  size_t sent = 0;  // of the large ones of worker 0, whose limit is 0.25, with the scaler 1
  for (size_t i = 0; i < kLength; i += kApart) sent += locals[1][i] != 0;
  EXPECT_GT(sent, 5U);
  EXPECT_LT(sent, 50U) << "of 100, of which a quarter is expected";
}

}  // namespace
}  // namespace kvstore_ext
