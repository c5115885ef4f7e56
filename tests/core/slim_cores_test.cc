// Slim-DP's workers and servers where their cores differ, as after loading other states.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "cluster.h"
#include "forged.h"
#include "slim_dp/slim_key.h"

namespace kvstore_ext {
namespace {

// Small enough to be encoded at once, of several slices, and empty.
const std::vector<uint64_t> kElements = {100, 400000, 0};
constexpr char kMethod[] =
    "slim_dp alpha=0.5 beta=0.25 q=1000 core_delay=0 server_lr=1 seed=0 explorer=seed "
    "explorer_mean=pushed";

// Each fourth element of a slice, beginning with one of the first.
Subset EachFourth(size_t elements, size_t first) {
  Subset members(elements);
  for (size_t i = first; i < elements; i += 4) members.Insert(i);
  return members;
}

// Workers that have the first parameters, all 1, and the core of every fourth element.
class SlimCores : public testing::Test {
 protected:
  explicit SlimCores(const Limits& limits = ClusterOptions().limits)
      : cluster_(OptionsWith(limits)) {}

  static ClusterOptions OptionsWith(const Limits& limits) {
    ClusterOptions options;
    options.limits = limits;
    return options;
  }

  void SetUp() override {
    cluster_.Join({});
    cluster_.OnEveryWorker([this](int rank, Worker* worker) {
      models_[rank] = std::make_shared<SlimModel>(kMethod, rank);
      for (uint64_t key = 0; key < kElements.size(); ++key) {
        SliceDeclaration declaration;
        declaration.elements = kElements[key];
        declaration.name = std::to_string(key);
        codecs_[rank].push_back(std::make_shared<SlimKey>(models_[rank], kWorkers));
        worker->Declare(key, declaration, codecs_[rank].back());
        locals_[rank].emplace_back(kElements[key], 1.0F);
      }
      for (uint64_t key = 0; key < kElements.size(); ++key) RunRound(rank, key);
      models_[rank]->SetSizes(kAll / 4, kAll / 2);
    });
    ForEachSlice([this](const SliceName& name, const Slice& slice) {
      cluster_.slim_server(slice.server).SetCores(0, {{name, EachFourth(slice.length, 0)}});
    });
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const auto& model : models_) {
      while (!model->Ready(1)) {
        ASSERT_LT(std::chrono::steady_clock::now(), latest) << "the core has not come";
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  void ForEachSlice(const std::function<void(const SliceName&, const Slice&)>& function) {
    for (uint64_t key = 0; key < kElements.size(); ++key) {
      for (const Slice& slice : cluster_.worker(0).Slices(key)) {
        function({key, slice.index}, slice);
      }
    }
  }

  void RunRound(int rank, uint64_t key) {
    std::vector<float>& local = locals_[rank][key];
    EXPECT_EQ(Exchange(&cluster_.worker(rank), key, local, &local), "");
  }

  // Worker 0 adds 1 to key 0 and begins its round; the others do so to its end.
  std::future<std::string> BeginKey0() {
    std::vector<float>& local = locals_[0][0];
    for (float& parameter : local) parameter += 1;
    return Begin(&cluster_.worker(0), 0, local, &local);
  }
  void EndKey0(std::future<std::string> end) {
    for (int rank : {1, 2}) {
      for (float& parameter : locals_[rank][0]) parameter += 1;
    }
    std::thread other([this] { RunRound(1, 0); });
    RunRound(2, 0);
    other.join();
    EXPECT_EQ(end.get(), "");
    const std::vector<float>& local = locals_[0][0];
    for (size_t i = 0; i < local.size(); i += 4) EXPECT_EQ(local[i], 2);
  }

  // Every worker adds 1 to everything, and the core's elements come back so.
  void ExpectARoundWithTheCore(float value) {
    cluster_.OnEveryWorker([this](int rank, Worker*) {
      std::vector<std::thread> threads;
      for (uint64_t key = 0; key < kElements.size(); ++key) {
        for (float& parameter : locals_[rank][key]) parameter += 1;
        threads.emplace_back([this, rank, key] { RunRound(rank, key); });
      }
      for (auto& thread : threads) thread.join();
    });
    ForEachSlice([this, value](const SliceName& name, const Slice& slice) {
      for (int rank = 0; rank < kWorkers; ++rank) {
        const auto core = codecs_[rank][name.first]->CoresOf(slice).at(0);
        EXPECT_EQ(core->signature, EachFourth(slice.length, 0).signature());
        const float* local = locals_[rank][name.first].data() + slice.offset;
        size_t wrong = 0;
        for (size_t i = 0; i < slice.length; i += 4) wrong += local[i] != value;
        EXPECT_EQ(wrong, 0U) << "elements of key " << name.first << " at worker " << rank;
      }
    });
  }

  static constexpr int kWorkers = 3;
  static constexpr size_t kAll = 400100;

  std::shared_ptr<SlimModel> models_[kWorkers];
  std::vector<std::shared_ptr<SlimKey>> codecs_[kWorkers];  // by key, as the next
  std::vector<std::vector<float>> locals_[kWorkers];
  Cluster cluster_;  // last: it uses the above until it ends
};

TEST_F(SlimCores, AWorkerWithAnotherCoreTakesTheServers) {
  ForEachSlice([this](const SliceName& name, const Slice& slice) {
    if (slice.length == 0) return;
    const Buffer other = EachFourth(slice.length, 1).ToBuffer();
    codecs_[1][name.first]->SetCore(slice, 0, other);
  });
  ExpectARoundWithTheCore(2);
  ExpectARoundWithTheCore(3);
}

TEST_F(SlimCores, AServerWithoutACoreTakesTheWorkers) {
  ForEachSlice([this](const SliceName& name, const Slice& slice) {
    const std::vector<float> values(slice.length, 1.0F);
    Buffer parameters = Buffer::Allocate(values.size() * sizeof(float));
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(parameters.data.get()));
    cluster_.slim_server(slice.server).Resume(name, parameters, {});
  });
  ExpectARoundWithTheCore(2);
  ExpectARoundWithTheCore(3);
}

// An update of key 0 by worker 1, with so many numbers.
Message UpdateOf(const UpdateHeader& header, size_t numbers) {
  Message message = With(Of(MessageType::kPush), sizeof header + numbers * sizeof(float));
  message.header.encoding = Encoding::kEncoded;
  std::memcpy(message.payload.data.get(), &header, sizeof header);
  return message;
}

TEST_F(SlimCores, UpdatesThatCannotBeReadEndNothing) {
  UpdateHeader right;
  right.signature = EachFourth(100, 0).signature();
  right.round = 1;
  right.explorers = 10;
  right.rank = 1;
  std::vector<UpdateHeader> wrong(5, right);
  wrong[0].rank = 2;
  wrong[1].selection = 5;
  wrong[2].full = 1;
  wrong[3].explorers = 76;  // 75 are outside the core
  wrong[4].round = 1000;    // whose updates are full
  std::vector<Message> forged = {With(Of(MessageType::kPush), 20), UpdateOf(right, 34),
                                 UpdateOf(right, 36)};
  forged[0].header.encoding = Encoding::kEncoded;
  for (const UpdateHeader& header : wrong) forged.push_back(UpdateOf(header, 35));
  const int server = cluster_.worker(0).Slices(0)[0].server;
  for (const Message& message : forged) cluster_.ForgeFromWorker(1, server, message);
  ExpectARoundWithTheCore(2);
  EXPECT_EQ(cluster_.AwaitRefused(forged.size()), forged.size());
}

// Whoever had answered for it would have its selections take the place of those that hold.
TEST_F(SlimCores, AnUpdateOfARoundThatIsFarFromTheOthersEndsNothing) {
  ExpectARoundWithTheCore(2);
  UpdateHeader header;
  header.round = 3001;
  header.selection = 3;
  header.rank = 1;
  Message forged = UpdateOf(header, 35);
  forged.header.round = 2;  // which is open
  cluster_.ForgeFromWorker(1, cluster_.worker(0).Slices(0)[0].server, forged);
  ExpectARoundWithTheCore(3);
  EXPECT_EQ(cluster_.AwaitRefused(1), 1U);
}

// A core of key 0 and a selection, of which all bits are set: elements 100 to 127 as well.
Message CoreAbove(uint64_t selection, Encoding encoding = Encoding::kPlain) {
  Message message = With(Of(MessageType::kMethod, 0, selection), 16);
  std::memset(message.payload.data.get(), 0xff, 16);
  message.header.encoding = encoding;
  return message;
}

// One that can be read.
Message CoreOf(const Subset& members, uint64_t selection, Encoding encoding) {
  Message message = Of(MessageType::kMethod, 0, selection);
  message.payload = members.ToBuffer();
  message.header.whole = static_cast<uint32_t>(message.payload.size);
  message.header.encoding = encoding;
  return message;
}

TEST_F(SlimCores, CoresThatNobodyHasAskedForEndNothing) {
  const int server = cluster_.worker(0).Slices(0)[0].server;
  for (const Message& message : {CoreAbove(0), With(Of(MessageType::kMethod, 0, 3), 16)}) {
    cluster_.ForgeFromWorker(1, server, message);
  }
  ExpectARoundWithTheCore(2);
  EXPECT_EQ(cluster_.AwaitRefused(2), 2U);
}

TEST_F(SlimCores, CoresThatNoServerCanSendEndNothing) {
  const int server = cluster_.worker(0).Slices(0)[0].server;
  const Subset other = EachFourth(100, 1);
  const std::vector<Message> forged = {
      CoreOf(other, 0, Encoding::kPlain),    // it is known
      CoreOf(other, 0, Encoding::kSkipped),  // no update is under way
      CoreOf(other, 1, Encoding::kPlain),    // is made after 1000 rounds
      CoreOf(other, ~uint64_t{0}, Encoding::kPlain),
      Of(MessageType::kMethod, 0, 0),
  };
  for (const Message& message : forged) cluster_.ForgeFromServer(server, 0, message);
  EXPECT_EQ(cluster_.AwaitRefused(forged.size()), forged.size());
  ExpectARoundWithTheCore(2);
}

// Worker 0 hears what a server has not sent while its update of key 0 is under way.
TEST_F(SlimCores, WhatCannotBeReadDuringARoundEndsNothing) {
  auto end = BeginKey0();
  Message answer = With(Of(MessageType::kResult), 4);  // of another size
  answer.header.encoding = Encoding::kEncoded;
  for (const Message& message : {answer, CoreAbove(0, Encoding::kSkipped)}) {
    cluster_.ForgeFromServer(cluster_.worker(0).Slices(0)[0].server, 0, message);
  }
  EXPECT_EQ(cluster_.AwaitRefused(2), 2U);
  EndKey0(std::move(end));
}

// What is missing is missed soon.
class SlimCoresInHaste : public SlimCores {
 protected:
  static constexpr double kSilence = 2;

  SlimCoresInHaste() : SlimCores(Limits{20, kSilence, 20}) {}

  // The server of its one slice.
  int HomeOfKey0() { return cluster_.worker(0).Slices(0)[0].server; }

  // Worker 0, which has forgotten all cores, waits for them in a round of key 0; one of that
  // key has come and cannot be read.
  std::future<std::string> WaitForCores() {
    models_[0]->Resume(0);
    auto end = BeginKey0();
    cluster_.ForgeFromServer(HomeOfKey0(), 0, CoreAbove(0));
    EXPECT_EQ(cluster_.AwaitRefused(1), 1U);
    return end;
  }
};

TEST_F(SlimCoresInHaste, ACoreThatNobodyHasAskedForEndsNothingHoweverLongNothingFollows) {
  cluster_.ForgeFromWorker(1, HomeOfKey0(), CoreAbove(0));
  EXPECT_EQ(cluster_.AwaitRefused(1), 1U);
  EXPECT_EQ(cluster_.server(HomeOfKey0()).AwaitFailure(2 * kSilence), "");
  ExpectARoundWithTheCore(2);
}

TEST_F(SlimCoresInHaste, ACoreThatHasComeAfterABrokenOneIsNotMissedWhileOthersAre) {
  auto end = WaitForCores();
  cluster_.ForgeFromServer(HomeOfKey0(), 0, CoreOf(EachFourth(100, 0), 0, Encoding::kPlain));
  EXPECT_EQ(cluster_.server(0).AwaitFailure(2 * kSilence), "");
  ForEachSlice([this](const SliceName& name, const Slice& slice) {
    if (name.first == 0) return;
    codecs_[0][name.first]->SetCore(slice, 0, EachFourth(slice.length, 0).ToBuffer());
  });
  EndKey0(std::move(end));
}

TEST_F(SlimCoresInHaste, ACoreThatDoesNotComeAfterABrokenOneIsNamed) {
  const std::string reason = WaitForCores().get();
  EXPECT_EQ(reason.find("worker 0: a method from number " + std::to_string(HomeOfKey0()) +
                        " of key 0, slice 0, round 0 could not be read (members above the last "
                        "element in what should be a subset encoding), and for 2 s no other"),
            0U)
      << reason;
}

}  // namespace
}  // namespace kvstore_ext
