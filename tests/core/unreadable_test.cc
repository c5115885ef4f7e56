// What passes the gate and cannot be read all the same ends nothing, unless it was what somebody
// waits for and nobody will send again.
#include "transport/unreadable.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cluster.h"
#include "codecs/codec.h"
#include "forged.h"

namespace kvstore_ext {
namespace {

constexpr uint64_t kElements = 100;
constexpr int kWorkers = 3;
constexpr int kStranger = 1;  // the worker whose number a stranger takes
constexpr uint32_t kJob = 5;

struct Method {
  const char* name;
  bool sums_travel_encoded;
};
constexpr Method kMethods[] = {
    {"2bit threshold=0.5", false},
    {"terngrad clip_sigma=2.5 scaler_sharing=0 seed=0", false},
    {"qsgd bits=4 bucket=64 norm=l2 seed=0 error_feedback=0", true},
    {"dgc ratio=0.1 warmup_rounds=0 warmup_stages=1 clip_norm=1 momentum_masking=1", true},
    {"onebit bucket=64 error_feedback=0", true},
    {"signsgd scale=0.5 seed=0", true},
    {"fp16 error_feedback=0", true},
};

// What an encoder makes of one number among zeros, with something in it that none does. Of some
// methods every byte means something: it is too short then.
Buffer Broken(const std::string& method) {
  std::vector<float> values(kElements);
  values[3] = 1;
  const Buffer bytes =
      MakeCodec(method, kWorkers)->Encode(values.data(), kElements, 1, Draws(0, 1, 0, 2));
  const std::string name = method.substr(0, method.find(' '));
  if (name == "onebit" || name == "signsgd" || name == "fp16") {
    return bytes.Range(0, bytes.size - 1);
  }
  const size_t at = name == "dgc" ? sizeof(uint32_t) : bytes.size - 1;  // the index's bytes
  bytes.data.get()[at] = '\xff';
  return bytes;
}

Message Forged(MessageType type, const Buffer& payload, uint64_t round = 2) {
  Message message = Of(type, 0, round);
  message.job = kJob;
  message.header.encoding = Encoding::kEncoded;
  message.header.whole = static_cast<uint32_t>(payload.size);
  message.payload = payload;
  return message;
}

// A job that has initialised key 0 and pushed it once, or less, and a stranger who says what he
// likes.
class Job {
 public:
  explicit Job(const std::string& method, const Limits& limits = ClusterOptions().limits,
               int rounds = 2)
      : cluster_(OptionsOf(limits)) {
    cluster_.Join({kElements}, method);
    for (int round = 0; round < rounds; ++round) Run({0, 1, 2});
  }

  void Begin(int rank) {
    values_[rank].assign(kElements, 0);
    values_[rank][7] = 1;
    ends_[rank] = kvstore_ext::Begin(&cluster_.worker(rank), 0, values_[rank], &values_[rank]);
  }

  // The rest of the round: these begin it, too, and all have the same then.
  void Run(const std::vector<int>& ranks) {
    for (int rank : ranks) Begin(rank);
    for (auto& end : ends_) EXPECT_EQ(end.get(), "");
    for (const auto& values : values_) EXPECT_EQ(values, values_[0]);
  }

  // What all have.
  const std::vector<float>& values() const { return values_[0]; }
  Cluster& cluster() { return cluster_; }
  std::string End(int rank) { return ends_[rank].get(); }

 private:
  static ClusterOptions OptionsOf(const Limits& limits) {
    ClusterOptions options;
    options.servers = 1;
    options.job = kJob;
    options.limits = limits;
    return options;
  }

  std::vector<float> values_[kWorkers];
  std::future<std::string> ends_[kWorkers];
  Cluster cluster_;  // last: it uses the above until it ends
};

class OfMethod : public testing::TestWithParam<Method> {};

TEST_P(OfMethod, APushEndsNothing) {
  Job job(GetParam().name), undisturbed(GetParam().name);
  job.cluster().ForgeFromWorker(kStranger, 0, Forged(MessageType::kPush, Broken(GetParam().name)));
  job.Run({0, 1, 2});
  undisturbed.Run({0, 1, 2});
  for (size_t i = 0; i < kElements; ++i) {
    EXPECT_NEAR(job.values()[i], undisturbed.values()[i], 1e-4) << i;  // in any order of workers
  }
  EXPECT_EQ(job.cluster().AwaitRefused(1), 1U);
}

TEST_P(OfMethod, AResultEndsNothing) {
  Job job(GetParam().name);
  job.Begin(0);
  job.cluster().ForgeFromServer(0, 0, Forged(MessageType::kResult, Broken(GetParam().name)));
  job.Run({1, 2});
  EXPECT_EQ(job.cluster().AwaitRefused(1), 1U);
}

INSTANTIATE_TEST_SUITE_P(Unreadable, OfMethod, testing::ValuesIn(kMethods));

// It is looked at when it comes, while the right one may still come.
TEST(Unreadable, AResultThatNobodyTakesYetEndsNothing) {
  for (const Method& method : kMethods) {
    if (!method.sums_travel_encoded) continue;
    Job job(method.name);
    std::vector<float> gradient(kElements, 0.5F), pulled[kWorkers];
    std::vector<std::future<std::string>> ends;
    for (int rank = 0; rank < kWorkers; ++rank) {
      pulled[rank].resize(kElements);
      ends.push_back(Begin(&job.cluster().worker(rank), 0, gradient, nullptr));
      if (rank > 0) continue;
      job.cluster().ForgeFromServer(0, 0, Forged(MessageType::kResult, Broken(method.name)));
    }
    for (auto& end : ends) EXPECT_EQ(end.get(), "");
    EXPECT_EQ(job.cluster().AwaitRefused(1), 1U) << method.name;
    for (int rank = 0; rank < kWorkers; ++rank) {
      Worker* worker = &job.cluster().worker(rank);
      EXPECT_EQ(Begin(worker, 0, gradient, &pulled[rank], Operation::Kind::kPull).get(), "");
      EXPECT_EQ(pulled[rank], pulled[0]) << method.name;
    }
  }
}

TEST(Unreadable, ANumberThatIsMissingEndsNothing) {
  Job job("");
  job.Begin(0);
  Message nothing = Forged(MessageType::kResult, Buffer());
  nothing.header.encoding = Encoding::kPlain;
  job.cluster().ForgeFromServer(0, 0, nothing);
  job.Run({1, 2});
  EXPECT_EQ(job.cluster().AwaitRefused(1), 1U);
}

// The input may still be read.
TEST(Unreadable, AResultOfWhatHasNotLeftIsRefused) {
  constexpr char kShared[] = "terngrad clip_sigma=2.5 scaler_sharing=1 seed=0";
  Job job(kShared);
  job.Begin(0);  // and waits for the others' scalers
  const Buffer plain = With(Message(), kElements * sizeof(float)).payload;
  Message early = Forged(MessageType::kResult, plain);
  early.header.encoding = Encoding::kPlain;
  job.cluster().ForgeFromServer(0, 0, early);
  EXPECT_EQ(job.cluster().AwaitRefused(1), 1U);
  job.Run({1, 2});
}

// Who does not know the job's number is nobody that anything could be expected of.
TEST(Unreadable, AStrangersEndsNothingHoweverLongNothingFollows) {
  Job job(kMethods[0].name, Limits{20, 0.5, 20});
  job.Begin(0);
  job.Begin(2);
  Message push = Forged(MessageType::kPush, Broken(kMethods[0].name));
  Message result = Forged(MessageType::kResult, Broken(kMethods[0].name));
  push.job = result.job = kJob + 1;
  job.cluster().ForgeFromWorker(kStranger, 0, push);
  job.cluster().ForgeFromServer(0, 0, result);
  EXPECT_EQ(job.cluster().server(0).AwaitFailure(1.5), "");
  job.Run({1});
  EXPECT_EQ(job.cluster().AwaitRefused(2), 2U);
}

constexpr char kNoOther[] =
    ", and for 0.5 s no other has come in its place: the memory or the network of a host fails, or "
    "somebody else reaches this job's ports";

TEST(Unreadable, AWorkersIsNamedWhereNothingFollows) {
  Job job(kMethods[0].name, Limits{20, 0.5, 20});
  job.Begin(0);
  job.Begin(2);
  job.cluster().ForgeFromWorker(kStranger, 0, Forged(MessageType::kPush, Broken(kMethods[0].name)));
  const std::string reason =
      std::string(
          "server 0: a push from number 1 of key 0, slice 0, round 2 could not be read "
          "(a code of 3 in what should be a 2bit encoding)") +
      kNoOther;
  EXPECT_EQ(job.cluster().server(0).AwaitFailure(20), reason);
  for (int rank : {0, 2}) EXPECT_EQ(job.End(rank), reason);
}

TEST(Unreadable, PartsThatDoNotFitAreNamedWhereNothingFollows) {
  Job job("", Limits{20, 0.5, 20});
  job.Begin(0);
  job.Begin(2);
  Message part = Forged(MessageType::kPush, With(Message(), 8).payload);
  part.header.encoding = Encoding::kPlain;
  part.header.whole = kElements * sizeof(float);
  for (int twice = 0; twice < 2; ++twice) job.cluster().ForgeFromWorker(kStranger, 0, part);
  const std::string reason =
      "server 0: a push from number 1 of key 0, slice 0, round 2 could not be read "
      "(peer 1 sent bytes 0 to 8 of " +
      std::to_string(kElements * sizeof(float)) +
      ", of which others have come, or of another number)" + kNoOther;
  EXPECT_EQ(job.cluster().server(0).AwaitFailure(20), reason);
  for (int rank : {0, 2}) EXPECT_EQ(job.End(rank), reason);
}

TEST(Unreadable, SoArePartsOfAFirstValue) {
  Job job("", Limits{20, 0.5, 20}, 0);
  job.Begin(1);
  job.Begin(2);
  Message part = Forged(MessageType::kInit, With(Message(), 8).payload, 0);
  part.header.encoding = Encoding::kPlain;
  part.header.whole = kElements * sizeof(float);
  SliceDeclaration declared;
  declared.elements = kElements;
  part.text = declared.Pack();
  for (int twice = 0; twice < 2; ++twice) job.cluster().ForgeFromWorker(0, 0, part);
  const std::string reason = job.cluster().server(0).AwaitFailure(20);
  EXPECT_NE(reason.find("from number 0 of key 0, slice 0, round 0 could not be read (peer 0 sent"),
            std::string::npos)
      << reason;
  for (int rank : {1, 2}) EXPECT_EQ(job.End(rank), reason);
}

TEST(Unreadable, AServersIsNamedWhereNothingFollows) {
  Job job(kMethods[0].name, Limits{20, 0.5, 20});
  job.Begin(0);
  job.cluster().ForgeFromServer(0, 0, Forged(MessageType::kResult, Broken(kMethods[0].name)));
  EXPECT_EQ(job.End(0),
            std::string("worker 0: a result from number 0 of key 0, slice 0, round 2 could not be "
                        "read (a code of 3 in what should be a 2bit encoding)") +
                kNoOther);
}

Message BrokenBatch() {
  Message batch = With(Of(MessageType::kBatch), 20);
  batch.job = kJob;
  return batch;
}

TEST(Unreadable, ABatchThatBreaksOffIsNamedWhereNothingFollows) {
  Job job("", Limits{20, 0.5, 20});
  job.Begin(0);
  job.Begin(2);
  job.cluster().ForgeFromWorker(kStranger, 0, BrokenBatch());
  const std::string reason =
      std::string(
          "server 0: a batch from number 1 could not be read "
          "(peer 1 sent a batch of 20 bytes with no whole message at byte 0)") +
      kNoOther;
  EXPECT_EQ(job.cluster().server(0).AwaitFailure(20), reason);
  for (int rank : {0, 2}) EXPECT_EQ(job.End(rank), reason);
}

TEST(Unreadable, AServersBatchThatBreaksOffIsNamedWhereNothingFollows) {
  Job job("", Limits{20, 0.5, 20});
  job.Begin(0);
  job.cluster().ForgeFromServer(0, 0, BrokenBatch());
  EXPECT_EQ(job.End(0),
            std::string("worker 0: a batch from number 0 could not be read "
                        "(peer 0 sent a batch of 20 bytes with no whole message at byte 0)") +
                kNoOther);
}

TEST(Unreadable, ABatchThatBreaksOffEndsNothingWhereNobodyWaits) {
  Job job("", Limits{20, 0.5, 20});
  job.cluster().ForgeFromWorker(kStranger, 0, BrokenBatch());
  job.cluster().ForgeFromServer(0, 0, BrokenBatch());
  EXPECT_EQ(job.cluster().server(0).AwaitFailure(1.5), "");
  job.Run({0, 1, 2});
  EXPECT_EQ(job.cluster().AwaitRefused(2), 2U);
}

}  // namespace
}  // namespace kvstore_ext
