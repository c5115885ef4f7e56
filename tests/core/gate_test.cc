// What no process of a job sends is dropped and counted, and the job comes to the same end.
#include "transport/gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "cluster.h"
#include "forged.h"
#include "keys/shared_scaler.h"
#include "scheduler_end.h"
#include "transport/process_ids.h"

namespace kvstore_ext {
namespace {

constexpr uint64_t kElements = 100;
constexpr int kStranger = 1;  // the worker, or server, whose number a stranger takes

SliceDeclaration Declared(uint64_t elements, const std::string& method = "") {
  SliceDeclaration declaration;
  declaration.elements = elements;
  declaration.name = "0";
  declaration.method = method;
  return declaration;
}

Message Init(uint64_t key, const SliceDeclaration& declaration) {
  return WithText(Of(MessageType::kInit, key, 0), declaration.Pack());
}

Message Numbered(Message message, uint32_t slice, Encoding encoding = Encoding::kPlain) {
  message.header.slice = slice;
  message.header.encoding = encoding;
  return message;
}

Message Rooted(Message message, uint16_t root) {
  message.header.root = root;
  return message;
}

// So many first bytes of a message of more.
Message Beginning(Message message, uint32_t whole) {
  message.header.whole = whole;
  return message;
}

// Goes to server 0 of a job that has pushed key 0 once.
std::vector<Message> ForgedToAServer() {
  const size_t plain = kElements * sizeof(float);
  const uint64_t huge = uint64_t{1} << 62;
  std::vector<Message> forged = {
      Of(MessageType::kHello),
      Of(MessageType::kWelcome),
      Of(MessageType::kResult),
      Of(MessageType::kPong),
      Of(MessageType::kFarewell),
      Of(MessageType::kMet),
      Of(static_cast<MessageType>(kMessageTypes)),
      Of(static_cast<MessageType>(255)),
      WithText(Of(MessageType::kWindow), Window{1, 1}.Pack()),
      Of(MessageType::kOrder),
      WithText(Of(MessageType::kJoin), "another store"),
      // Of the key that there is.
      With(Of(MessageType::kPush, 0, 2), plain - 4),
      With(Of(MessageType::kPush, 0, 2), plain + 4),
      Of(MessageType::kPush, 0, 2),
      With(Of(MessageType::kPush, 0, 1), plain),  // of a round that is over
      With(Of(MessageType::kPush, 0, 3), plain),
      With(Numbered(Of(MessageType::kPush, 0, 2), 0, static_cast<Encoding>(7)), plain),
      With(Numbered(Of(MessageType::kPush, 0, 2), 0, Encoding::kEncoded), 20),
      Numbered(Of(MessageType::kPush, 0, 2), 0, Encoding::kSkipped),
      With(Rooted(Of(MessageType::kPush, 0, 2), 3), plain),
      With(Numbered(Of(MessageType::kPush, 0, 2), 1), plain),
      Beginning(With(Of(MessageType::kPush, 0, 2), 60), 4000000000),
      Beginning(Of(MessageType::kPush, 0, 2), plain),
      Init(0, Declared(kElements)),
      With(Init(0, Declared(3)), 12),
      Of(MessageType::kScaler, 0, 2),
      WithText(Of(MessageType::kScaler, 0, 7), "1234"),
      WithText(Of(MessageType::kScaler, 0, 1), std::string(4, '\0')),  // which has no scaler
      With(Of(MessageType::kMethod), 16),
      // Of keys that nobody has.
      With(Of(MessageType::kPush, 17), plain),
      Of(MessageType::kPull, 17),
      WithText(Of(MessageType::kScaler, 17), "1234"),
      Of(MessageType::kMethod, 17),
      WithText(Of(MessageType::kInit, 18, 0), "no declaration"),
      Init(18, Declared(huge)),
      Init(18, Declared(huge, "2bit threshold=0.5")),
      Init(18, Declared(std::numeric_limits<uint64_t>::max())),
      With(Init(18, Declared(10)), 40),  // where the first value is worker 0's
      Rooted(Init(18, Declared(10, kBroadcast)), 3),
      With(Rooted(Init(18, Declared(10, kBroadcast)), 1), 44),
      Numbered(Init(18, Declared(10)), 0, Encoding::kEncoded),
      // About the job.
      WithText(Of(MessageType::kIdle), "short"),
      WithText(Of(MessageType::kLeave),
               "12345678"
               "12345678"),
      With(Of(MessageType::kLeave), 8),
      With(Of(MessageType::kBatch), 20),
      Beginning(With(Of(MessageType::kBatch), 20), 40),
  };
  Message beyond = With(Of(MessageType::kPush, 0, 2), 20);
  beyond.header.offset = 4294967290U;
  forged.push_back(std::move(beyond));
  return forged;
}

// Goes to worker 0 of that job.
std::vector<Message> ForgedToAWorker() {
  const size_t plain = kElements * sizeof(float);
  Message answer = With(Of(MessageType::kAnswer), 10);
  Resumption unknown;
  unknown.rounds[17] = 3;
  return {
      Of(MessageType::kJoin),
      With(Of(MessageType::kPush), plain),
      Of(MessageType::kPing),
      Of(MessageType::kPong),  // nobody has asked for one
      Of(MessageType::kBye),
      answer,
      WithText(Of(MessageType::kOrder), "123"),
      WithText(Of(MessageType::kWindow), "123"),
      WithText(Of(MessageType::kWindow), Window{0, 0}.Pack()),
      WithText(Of(MessageType::kScaler), "1234"),
      With(Of(MessageType::kMethod), 16),
      With(Of(MessageType::kResult, 17), plain),
      With(Of(MessageType::kResult, 0, 2), plain - 4),
      With(Numbered(Of(MessageType::kResult, 0, 2), 9), plain),
      Numbered(Of(MessageType::kResult, 0, 2), 0, Encoding::kSkipped),
      With(Numbered(Of(MessageType::kResult, 0, 2), 0, Encoding::kEncoded), 20),
      Beginning(With(Of(MessageType::kResult, 0, 2), 60), 4000000000),
      WithText(Of(MessageType::kResume), "12345"),
      WithText(Of(MessageType::kResume), unknown.Pack()),
      WithText(Of(MessageType::kResume), Resumption().Pack()),  // it has not rested
      // To rank 0, which tells others.
      WithText(Numbered(Of(MessageType::kWindow), 7), Window{1, 1}.Pack()),
      WithText(Of(MessageType::kOrder, 0, 7), std::string(8, '\0')),
      Of(MessageType::kSparse),           // it is not idle, nor is that server 0
      Of(MessageType::kFarewell),         // it has not left
      Of(MessageType::kCredit, 0, 1000),  // bytes that MXNet's own store would send
  };
}

// So many rounds, of which the first is a key's first value unless there was one before.
void Train(Cluster* cluster, int rounds, bool begins = true) {
  cluster->OnEveryKey([rounds, begins](int rank, Worker* worker, uint64_t key) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> values(kElements, static_cast<float>(rank + 1));
      EXPECT_EQ(Exchange(worker, key, values, &values), "");
      if (begins && round == 0) continue;  // all have worker 0's value
      EXPECT_EQ(values, std::vector<float>(kElements, 6));
    }
  });
}

TEST(Gate, AServerRefusesWhatNoWorkerSends) {
  ClusterOptions options;
  options.servers = 1;
  Cluster cluster(options);
  cluster.Join({kElements});
  Train(&cluster, 2);
  const std::vector<Message> forged = ForgedToAServer();
  for (const Message& message : forged) cluster.ForgeFromWorker(kStranger, 0, message);
  EXPECT_EQ(cluster.AwaitRefused(forged.size()), forged.size());
  Train(&cluster, 3, false);
}

TEST(Gate, AServerKnowsWhoHasJoined) {
  ClusterOptions options;
  options.servers = 1;
  Cluster cluster(options);
  const std::vector<Message> early = {Init(0, Declared(10)), Of(MessageType::kAsk),
                                      Of(MessageType::kLeave),
                                      WithText(Of(MessageType::kMeet), "come to barrier 1"),
                                      WithText(Of(MessageType::kIdle), IdleNotice().Pack())};
  for (const Message& message : early) cluster.ForgeFromWorker(kStranger, 0, message);
  cluster.Join({kElements});
  Train(&cluster, 2);
  EXPECT_EQ(cluster.AwaitRefused(early.size()), early.size());
}

TEST(Gate, AWorkerRefusesWhatNoServerSends) {
  Cluster cluster;
  cluster.Join({kElements});
  Train(&cluster, 2);
  const std::vector<Message> forged = ForgedToAWorker();
  for (const Message& message : forged) cluster.ForgeFromServer(kStranger, 0, message);
  EXPECT_EQ(cluster.AwaitRefused(forged.size()), forged.size());
  Train(&cluster, 3, false);
}

// Has a worker hear what the test wants.
class Heard : public Transport {
 public:
  void Start(MessageHandler handler) override { handler_ = std::move(handler); }
  void Send(const Message&) override {}
  void Stop() override {}
  void Deliver(const Message& message) { handler_(message); }

 private:
  MessageHandler handler_;
};

TEST(Gate, AServerIsKnownByItsGreeting) {
  const auto heard = std::make_shared<Heard>();
  Worker worker(WorkerOptions(), heard);
  const std::string text = "come to barrier 1";
  const Message met = WithText(Of(MessageType::kMet), text);
  heard->Deliver(met);
  EXPECT_EQ(worker.refused(), 1U);
  EXPECT_FALSE(worker.AwaitMeeting(text, 0));
  heard->Deliver(HelloMessage("host", 0));
  heard->Deliver(met);
  EXPECT_EQ(worker.refused(), 1U);
  EXPECT_TRUE(worker.AwaitMeeting(text, 0));
}

// With servers' numbers, whether or not a launcher has told the workers as well.
TEST(Gate, NobodyHearsAProcessOfAnotherJob) {
  ClusterOptions options;
  options.job = 5;
  Cluster cluster(options);
  cluster.Join({kElements});
  Train(&cluster, 2);
  const size_t plain = kElements * sizeof(float);
  const std::vector<Message> to_server = {WithText(Of(MessageType::kAbort), "theirs"),
                                          With(Of(MessageType::kPush, 0, 2), plain),
                                          Of(MessageType::kCredit), Of(MessageType::kJoin)};
  const std::vector<Message> to_worker = {WithText(Of(MessageType::kAbort), "theirs"),
                                          With(Of(MessageType::kResult, 0, 2), plain),
                                          Of(MessageType::kCredit), Of(MessageType::kHello)};
  for (const uint32_t job : {0U, 6U}) {
    for (Message message : to_server) {
      message.job = job;
      cluster.ForgeFromWorker(kStranger, 0, message);
    }
    for (Message message : to_worker) {
      message.job = job;
      cluster.ForgeFromServer(kStranger, 0, message);
    }
  }
  EXPECT_EQ(cluster.AwaitRefused(16), 16U);
  Train(&cluster, 3, false);
}

TEST(Gate, AWorkerOfAnotherJobIsTold) {
  ClusterOptions options;
  options.servers = 1;
  Cluster cluster(options);
  cluster.server(0).Greet(kStranger, "elsewhere", "theirs");  // whose rank a worker has already
  cluster.Join({kElements});
  Train(&cluster, 2);
  EXPECT_EQ(cluster.AwaitRefused(1), 1U);
}

TEST(Gate, ASchedulerThatHearsOnlyAnotherJobEnds) {
  SchedulerEnd end(2, 0.2, 5);
  Message sign = Of(MessageType::kCredit);
  sign.peer = 0;
  sign.job = 6;
  std::string reason;
  for (int i = 0; i < 200 && reason.empty(); ++i) {
    end.other.Send(sign);
    reason = end.scheduler.AwaitFailure(0.02);
  }
  EXPECT_EQ(reason,
            "the scheduler has heard of no process of its own job for 0.2 s, but of another one's: "
            "is KVSTORE_EXT_JOB the same everywhere?");
}

TEST(Gate, ASchedulerForgetsWhatWasLeftOverOfAnotherJob) {
  SchedulerEnd end(2, 0.2, 5);
  Message sign = Of(MessageType::kCredit);
  sign.job = 6;
  end.other.Send(sign);
  EXPECT_EQ(end.scheduler.AwaitFailure(0.4), "");
  EXPECT_EQ(end.scheduler.AwaitFailure(0.2), "");
}

TEST(Gate, ASchedulerTellsHowMuchItHasRefused) {
  SchedulerEnd end(0, 5, 0);
  std::promise<uint64_t> told;
  end.other.Start([&](const Message& answer) { told.set_value(RefusedAt(answer)); });
  for (const MessageType type : {MessageType::kPush, MessageType::kJoin, MessageType::kCredit}) {
    Message message = Of(type);
    message.peer = 0;
    end.other.Send(message);
  }
  std::future<uint64_t> answer = told.get_future();
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(answer.get(), 2U);
}

TEST(Gate, AWorkerCountsWhatTheSchedulerHasRefused) {
  Cluster cluster;
  cluster.Join({kElements});
  cluster.ForgeFromScheduler(0, SignOfLife(3));
  cluster.ForgeFromScheduler(0, SignOfLife(2));  // which was earlier
  cluster.ForgeFromServer(0, 0, SignOfLife(1));  // comes last
  EXPECT_EQ(cluster.AwaitRefused(4), 4U);
}

TEST(Gate, WhatOthersSayReachesNoTerminalAsItIs) {
  testing::internal::CaptureStderr();
  Gate(Side::kWorker).Refuse("a \x1b[2Jmessage", "it is\r\xff");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("sends: a ?[2Jmessage: it is??;"), std::string::npos) << said;
  Failure failure;
  failure.Set("worker 1: \x1b]0;title\x07");
  EXPECT_EQ(failure.reason(), "worker 1: ?]0;title?");
}

TEST(Gate, TheFirstThatIsRefusedIsNamed) {
  testing::internal::CaptureStderr();
  Gate gate(Side::kScheduler);
  EXPECT_TRUE(gate.Admits(Of(MessageType::kCredit)));
  for (const int peer : {kNobody, kScheduler, 1}) {
    Message message = Of(MessageType::kFarewell, 0, 0);
    message.peer = peer;
    EXPECT_FALSE(gate.Admits(message));
  }
  EXPECT_EQ(gate.refused(), 3U);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "kvstore_ext: refused what no process of this job sends: a farewell from number -2 of "
            "key 0, slice 0, round 0: no process of the job has such a number; more of it is only "
            "counted, in stats()\n");
}

TEST(Gate, AProcessKnowsItsPeersByTheirNumbers) {
  for (const Role role : {Role::kServer, Role::kWorker, Role::kScheduler}) {
    for (int peer = kScheduler; peer < 6; ++peer) {
      EXPECT_EQ(PeerOf(role, 6, PeerId(role, peer)), peer);
    }
    EXPECT_EQ(PeerOf(role, 6, PeerId(role, 6)), kNobody);
    for (const int id :
         {std::numeric_limits<int>::min(), -1, 0, 2, 7, 100, std::numeric_limits<int>::max()}) {
      EXPECT_EQ(PeerOf(role, 6, id), kNobody) << id;
    }
  }
  EXPECT_EQ(PeerOf(Role::kServer, 6, ServerId(0)), kNobody) << "a server hears workers";
  EXPECT_EQ(PeerOf(Role::kWorker, 6, WorkerId(0)), kNobody) << "a worker hears servers";
}

TEST(Gate, AScalerIsNeitherNegativeNorInfinite) {
  for (const float scaler : {0.0F, 2.5F}) EXPECT_EQ(UnpackScaler(PackScaler(scaler)), scaler);
  EXPECT_TRUE(std::isnan(UnpackScaler(PackScaler(std::numeric_limits<float>::quiet_NaN()))));
  for (const float scaler : {-1.0F, std::numeric_limits<float>::infinity()}) {
    EXPECT_THROW(UnpackScaler(PackScaler(scaler)), std::invalid_argument);
  }
}

TEST(Gate, WorkersThatCutAKeyDifferentlyAreTold) {
  ClusterOptions options;
  options.servers = 1;
  Cluster cluster(options);
  cluster.Join({});
  cluster.ForgeFromWorker(0, 0, With(Init(0, Declared(10)), 40));
  cluster.ForgeFromWorker(kStranger, 0, Init(0, Declared(9)));
  EXPECT_EQ(cluster.server(0).AwaitFailure(20), "server 0: workers cut key 0 differently");
}

// Its optimizer would take the values of one slice for those of another type.
TEST(Gate, AWorkerThatDeclaresSlicesOfTwoTypesIsTold) {
  ClusterOptions options;
  options.servers = 1;
  Cluster cluster(options);
  cluster.Join({});
  SliceDeclaration half = Declared(10);
  half.dtype = DType::kFloat16;
  Message other = Init(0, Declared(0));
  other.header.slice = 1;
  cluster.ForgeFromWorker(0, 0, With(Init(0, half), 20));
  cluster.ForgeFromWorker(0, 0, other);
  const std::string failure = cluster.server(0).AwaitFailure(20);
  EXPECT_NE(failure.find("workers initialised a key differently: worker 0"), std::string::npos)
      << failure;
}

}  // namespace
}  // namespace kvstore_ext
