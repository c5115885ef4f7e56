// What a worker may be asked of a key, beside rounds of sums: kept results, broadcasts, and what no
// server knows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster.h"
#include "forged.h"
#include "keys/gradient_codec.h"
#include "keys/plain_codec.h"

namespace kvstore_ext {
namespace {

// Small enough to be encoded at once, of several slices, and empty.
const std::vector<uint64_t> kElements = {100, 200000, 0};

std::string Operate(Worker* worker, uint64_t key, Operation::Kind kind, const float* input,
                    float* output, int root = 0) {
  std::promise<std::string> ended;
  Operation operation;
  operation.key = key;
  operation.kind = kind;
  operation.input = reinterpret_cast<const char*>(input);
  operation.output = reinterpret_cast<char*>(output);
  operation.root = root;
  operation.done = [&ended](const std::string& error) { ended.set_value(error); };
  worker->Start(std::move(operation));
  return ended.get_future().get();
}

void Declare(Worker* worker, uint64_t key, uint64_t elements, std::shared_ptr<KeyCodec> codec) {
  SliceDeclaration declaration;
  declaration.elements = elements;
  declaration.name = std::to_string(key);
  worker->Declare(key, declaration, std::move(codec));
}

TEST(Operations, AKeyThatHasMissedARoundEndsTheJobWithItsNextOne) {
  Cluster cluster;
  cluster.Join({10, 10});
  const std::vector<float> input(10, 1.0F);
  const auto push = [&](int rank, uint64_t key) {
    return Operate(&cluster.worker(rank), key, Operation::Kind::kPush, input.data(), nullptr);
  };
  cluster.OnEveryWorker([&](int rank, Worker*) { EXPECT_EQ(push(rank, 0), ""); });
  cluster.worker(1).Miss(0);
  const std::string reason =
      "worker 1: key 0 cannot be sent: its gradient of the round before could not be computed";
  EXPECT_EQ(push(1, 0), reason);
  EXPECT_EQ(cluster.server(0).AwaitFailure(20), reason);
}

TEST(Operations, TheOnlyWorkerIsBehindNobody) {
  ClusterOptions options;
  options.workers = 1;
  Cluster cluster(options);
  cluster.Join({10});
  std::vector<float> values(10, 1.0F);
  const auto push = [&] {
    return Operate(&cluster.worker(0), 0, Operation::Kind::kPush, values.data(), values.data());
  };
  EXPECT_EQ(push(), "");
  cluster.worker(0).Miss(0);
  EXPECT_EQ(push(), "");
}

TEST(Operations, AGradientTakesNoFirstValuesPlace) {
  ClusterOptions options;
  options.workers = 1;
  Cluster cluster(options);
  cluster.Join({10});
  cluster.worker(0).Miss(0);
  const std::vector<float> gradient(10, 1.0F);
  EXPECT_EQ(Operate(&cluster.worker(0), 0, Operation::Kind::kPush, gradient.data(), nullptr),
            "worker 0: key 0 cannot be sent: its first value could not be computed");
}

TEST(Operations, NothingIsPulledBeforeAFirstValue) {
  Cluster cluster;
  cluster.Join({10});
  std::vector<float> output(10);
  EXPECT_EQ(Operate(&cluster.worker(1), 0, Operation::Kind::kPull, output.data(), output.data()),
            "worker 1: key 0 cannot be sent: it has no first value");
}

class Kept : public testing::TestWithParam<const char*> {};

TEST_P(Kept, AResultIsReadOnceItIsAskedForAndThenFromTheServer) {
  Cluster cluster;
  cluster.Join(kElements, GetParam());
  cluster.OnEveryKey([](int, Worker* worker, uint64_t key) {
    const std::vector<float> input(kElements[key], 4.0F);
    std::vector<float> output(input.size());
    const auto run = [&](Operation::Kind kind, const float* from, float* to) {
      EXPECT_EQ(Operate(worker, key, kind, from, to), "");
    };
    run(Operation::Kind::kPush, input.data(), nullptr);
    for (int round = 1; round < 4; ++round) {
      run(Operation::Kind::kPush, input.data(), nullptr);
      for (int reading = 0; reading < 2; ++reading) {
        output.assign(input.size(), -1);
        run(Operation::Kind::kPull, nullptr, output.data());
        EXPECT_EQ(output, std::vector<float>(input.size(), 12.0F)) << "key " << key;
      }
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    Worker& worker = cluster.worker(rank);
    size_t slices = 0;
    for (uint64_t key = 0; key < kElements.size(); ++key) slices += worker.Slices(key).size();
    EXPECT_EQ(worker.traffic().sent[static_cast<size_t>(MessageType::kPull)],
              3 * slices * sizeof(Header))
        << "each round's second reading asks for each slice, and the first for none";
  }
}

INSTANTIATE_TEST_SUITE_P(EveryCompression, Kept,
                         testing::Values("", "terngrad clip_sigma=0 scaler_sharing=1 seed=0",
                                         "qsgd bits=8 bucket=500 norm=max seed=0 "
                                         "error_feedback=1"));

TEST(Broadcasts, EveryRootsArrayReachesAllOthers) {
  // Without a network in between others read a root's array where it is, after its operation too.
  std::deque<std::vector<float>> arrays[3];
  Cluster cluster;
  cluster.Join({});
  cluster.OnEveryWorker([&arrays](int rank, Worker* worker) {
    for (uint64_t key = 0; key < kElements.size(); ++key) {
      Declare(worker, key, kElements[key], std::make_shared<PlainCodec>("broadcast"));
    }
    for (int round = 0; round < 9; ++round) {
      const int root = (round + 2) % 3;
      for (uint64_t key = 0; key < kElements.size(); ++key) {
        const auto value = [&](int of_rank) { return static_cast<float>(10 * round + of_rank); };
        arrays[rank].emplace_back(kElements[key], value(rank));
        float* array = arrays[rank].back().data();
        float* input = rank == root ? array : nullptr;
        float* output = rank == root ? nullptr : array;
        EXPECT_EQ(Operate(worker, key, Operation::Kind::kBroadcast, input, output, root), "");
        EXPECT_EQ(arrays[rank].back(), std::vector<float>(kElements[key], value(root)));
      }
    }
  });
}

// As where ps-lite cannot send: it throws.
TEST(Operations, OneThatCannotBeginEndsOnceHoweverLittleCanBeSent) {
  constexpr int kSender = 1;
  const std::string path = testing::TempDir() + std::to_string(getpid()) + ".events";
  const std::vector<float> input(100, 1.0F);
  std::vector<float> output(100);
  std::vector<std::string> ends;
  ClusterOptions options;
  options.damage = [](Message* message) {
    const MessageType type = message->header.type;
    if (message->peer != kSender) return;
    if (type == MessageType::kPing || type == MessageType::kAbort) {
      throw std::runtime_error("there is no way");
    }
  };
  Cluster cluster(options);
  cluster.Join({100});
  cluster.OnEveryWorker([](int, Worker* worker) {
    std::vector<float> values(100, 1.0F);
    EXPECT_EQ(Exchange(worker, 0, values, &values), "");
  });
  Worker& worker = cluster.worker(kSender);
  worker.recorder().Open(path, 1000, 2, 100);  // from the step before on, which begins with a ping
  std::remove(path.c_str());
  Operation operation;
  operation.key = 0;
  operation.kind = Operation::Kind::kPush;
  operation.input = reinterpret_cast<const char*>(input.data());
  operation.output = reinterpret_cast<char*>(output.data());
  operation.done = [&ends](const std::string& error) { ends.push_back(error); };
  EXPECT_NO_THROW(worker.Start(std::move(operation)));
  worker.Hush();
  EXPECT_EQ(ends, std::vector<std::string>{"worker 1: key 0 cannot be sent: there is no way"});
}

// What is queued, or left to the network, is read after the operation whose answers were forged.
TEST(Operations, WhatIsToLeaveKeepsItsMemoryWhoeverAnswers) {
  constexpr size_t kMany = 400000;  // of several slices
  std::mutex mutex;
  bool sending = true;
  std::vector<Message> held;  // as ZeroMQ does, whose thread sends them
  ClusterOptions options;
  options.servers = 1;
  options.damage = [&](Message* message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (sending && message->header.type == MessageType::kPush) held.push_back(*message);
  };
  auto input = std::make_shared<std::vector<float>>(kMany, 1.0F);
  const std::weak_ptr<std::vector<float>> memory = input;
  std::vector<float> output(kMany);
  Cluster cluster(options);
  cluster.Join({kMany});
  cluster.OnEveryWorker([](int, Worker* worker) {
    std::vector<float> values(kMany, 1.0F);
    EXPECT_EQ(Exchange(worker, 0, values, &values), "");
  });
  std::promise<std::string> ended;
  Operation operation;
  operation.key = 0;
  operation.kind = Operation::Kind::kPush;
  operation.input = reinterpret_cast<const char*>(input->data());
  operation.owner = input;
  operation.output = reinterpret_cast<char*>(output.data());
  operation.done = [&ended](const std::string& error) { ended.set_value(error); };
  cluster.worker(0).Start(std::move(operation));
  for (const Slice& slice : cluster.worker(0).Slices(0)) {
    Message result = With(Of(MessageType::kResult, 0, 1), slice.length * sizeof(float));
    result.header.slice = slice.index;
    cluster.ForgeFromServer(0, 0, result);
  }
  EXPECT_EQ(ended.get_future().get(), "");
  input.reset();
  EXPECT_FALSE(memory.expired());
  {
    std::lock_guard<std::mutex> lock(mutex);
    sending = false;
    held.clear();
  }
  for (int i = 0; i < 2000 && !memory.expired(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(memory.expired()) << "once all has left";
}

TEST(Declarations, AMethodThatAServerDoesNotKnowEndsTheJobAndLeavesTheServerWhole) {
  ClusterOptions options;
  options.workers = options.servers = 1;
  Cluster cluster(options);
  cluster.Join({});
  std::vector<float> values(100);
  Declare(&cluster.worker(0), 0, values.size(), std::make_shared<PlainCodec>("unheard of=1"));
  const std::string error = Exchange(&cluster.worker(0), 0, values, &values);
  EXPECT_NE(error.find("there is no compression 'unheard'"), std::string::npos) << error;
  EXPECT_EQ(cluster.server(0).held_bytes(), 0U);  // goes through all slices, as its watchdog does
}

TEST(Declarations, AKeyIsDeclaredOnceAndTheSecondCodecStaysWithoutOne) {
  ClusterOptions options;
  options.workers = options.servers = 1;
  Cluster cluster(options);
  const std::string method = "fp16 error_feedback=1";
  cluster.Join({100}, method);
  const auto second = std::make_shared<GradientCodec>(method, 1, false);
  EXPECT_THROW(Declare(&cluster.worker(0), 0, 100, second), std::invalid_argument);
  EXPECT_THROW(second->state(), std::logic_error);
  EXPECT_THROW(second->SetMomentum(0.9F), std::logic_error);
  std::vector<float> values(100, 2.0F);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Exchange(&cluster.worker(0), 0, values, &values), "");
    EXPECT_EQ(values, std::vector<float>(100, 2.0F));
  }
}

TEST(Operations, AnEarlierOrderDoesNotTakeALaterOnesPlace) {
  Cluster cluster;
  cluster.Join({10, 10});
  const auto tell = [&cluster](const std::vector<uint64_t>& keys, uint64_t number) {
    const std::string text(reinterpret_cast<const char*>(keys.data()), 8 * keys.size());
    cluster.ForgeFromServer(0, 1, OrderMessage(text, number));
  };
  tell({1, 0}, 2);
  tell({0, 1}, 1);
  cluster.ForgeFromServer(0, 1, ControlMessage(MessageType::kMet, "come to barrier 1"));
  ASSERT_TRUE(cluster.worker(1).AwaitMeeting("come to barrier 1", 20)) << "after both";
  EXPECT_EQ(cluster.worker(1).order(), std::vector<uint64_t>({1, 0}));
}

}  // namespace
}  // namespace kvstore_ext
