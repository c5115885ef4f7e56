// What ps-lite gets to read, and what would end its process.
#include "security/expected_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "security/early_barriers.h"

namespace kvstore_ext {
namespace {

std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value /= 128) text += static_cast<char>(value % 128 + 128);
  return text + static_cast<char>(value);
}

std::string Field(int number, uint64_t value) { return Varint(number * 8) + Varint(value); }

std::string Field(int number, const std::string& text) {
  return Varint(number * 8 + 2) + Varint(text.size()) + text;
}

std::string Node(uint64_t id, int role = 0, const std::string& host = "10.0.0.1",
                 uint64_t port = 9000) {
  return Field(2, Field(1, role) + Field(2, id) + Field(3, host) + Field(4, port) + Field(5, 0) +
                      Field(10, 0));
}

std::string Command(int number, const std::string& more = "", bool request = false) {
  return Field(1, 0) + Field(3, Field(1, number) + more) + Field(4, request) + Field(10, 0);
}

// As PackMeta writes one with so many parts.
std::string Data(uint64_t app, size_t parts, bool request, uint64_t customer) {
  return Field(1, 7) + Field(2, "text") + Field(4, request) + Field(5, 1) + Field(6, 0) +
         Field(7, app) + Field(8, 12345) + Field(9, std::string(parts, '\1')) +
         Field(10, customer) + Field(12, 0) + Field(13, ~uint64_t{0});
}

std::string Data(uint64_t app, size_t parts, bool request = true) {
  return Data(app, parts, request, app);
}

constexpr int kTerminate = 1;
constexpr int kAddNode = 2;
constexpr int kBarrier = 3;
constexpr int kAcknowledge = 4;
constexpr int kHeartbeat = 5;
constexpr uint64_t kNone = kPsLiteNone;

// As of a process with one store of MXNet's and the lane.
bool HasCustomer(int32_t app, int32_t customer) {
  return (app == 0 && customer == 0) || (app == 1 && customer == 1);
}

// In a job of three workers and two servers: of worker 1, server 1 and the scheduler.
class Expected : public testing::Test {
 protected:
  static bool Reads(PsLiteRole role, int32_t own, const std::string& name, const std::string& meta,
                    const std::vector<size_t>& data = {}) {
    return ExpectedMessages(role, 3, 2, &HasCustomer).WhyNot({name, meta, data}, own) == nullptr;
  }
  static bool Worker(const std::string& name, const std::string& meta,
                     const std::vector<size_t>& data = {}) {
    return Reads(PsLiteRole::kWorker, 11, name, meta, data);
  }
  static bool Server(const std::string& name, const std::string& meta,
                     const std::vector<size_t>& data = {}) {
    return Reads(PsLiteRole::kServer, 10, name, meta, data);
  }
  // Of which all processes have asked for their number.
  static bool Scheduler(const std::string& name, const std::string& meta) {
    ExpectedMessages expected(PsLiteRole::kScheduler, 3, 2, &HasCustomer);
    for (int port = 9000; port < 9005; ++port) {
      const std::string asking = Command(kAddNode, Node(kNone, 0, "10.0.0.1", port));
      EXPECT_EQ(expected.WhyNot({"asking", asking, {}}, 1), nullptr);
    }
    return expected.WhyNot({name, meta, {}}, 1) == nullptr;
  }
};

TEST_F(Expected, AreThoseOfTheJobsProcesses) {
  EXPECT_TRUE(Worker("ps8", Data(1, 1), {1000}));
  EXPECT_TRUE(Worker("ps10", Data(0, 2, false), {8, 4000}));
  EXPECT_TRUE(Worker("ps10", Data(0, 0, false)));
  EXPECT_TRUE(Server("ps13", Data(0, 3), {16, 4000, 8}));
  EXPECT_TRUE(Server("ps1", Data(1, 0)));
  EXPECT_TRUE(Scheduler("ps9", Data(1, 0)));
  EXPECT_TRUE(Worker("ps11", Command(kTerminate)));
  EXPECT_TRUE(Worker("ps1", Command(kBarrier, Field(3, ~uint64_t{0})))) << "of any group";
  EXPECT_TRUE(Scheduler("ps1", Command(kBarrier, Field(3, 7), true)));
  EXPECT_TRUE(Server("ps9", Command(kAcknowledge, Field(4, ~uint64_t{0}))));
  EXPECT_TRUE(Scheduler("ps8", Command(kHeartbeat, Node(8))));
  EXPECT_TRUE(Server("ps1", Command(kHeartbeat, Node(1, 2))));
  EXPECT_TRUE(Scheduler("stranger", Command(kAddNode, Node(kNone))));
  EXPECT_TRUE(Scheduler("ps9", Command(kAddNode, Node(9, 1)))) << "for one more store";
  EXPECT_TRUE(Reads(PsLiteRole::kWorker, kPsLiteNone, "ps1",
                    Command(kAddNode, Node(8) + Node(10) + Node(9, 1) + Node(11, 1) + Node(1, 2))));
}

TEST_F(Expected, OfOthersAreNone) {
  const std::string harmless = Data(1, 0);
  for (const char* name : {"ps9", "ps13", "ps12", "ps15", "ps99", "ps7", "ps0", "ps", "stranger",
                           "ps8x", "ps-8", "ps4294967304", ""}) {
    EXPECT_FALSE(Worker(name, harmless)) << name;
  }
  // ps-lite reads 8, 1 and 9, and ZeroMQ sees other names than those of who is connected.
  for (const char* name : {"ps08", "ps008", "ps00000000008"}) {
    EXPECT_FALSE(Worker(name, harmless)) << name;
  }
  for (const char* name : {"ps01", "ps009", "ps0"}) {
    EXPECT_FALSE(Scheduler(name, Command(kAddNode, Node(kNone)))) << name;
    EXPECT_FALSE(Worker(name, Command(kAddNode, Node(8)))) << name;
  }
  for (const char* name : {"ps8", "ps15", "ps99"}) EXPECT_FALSE(Server(name, harmless)) << name;
  EXPECT_FALSE(Scheduler("ps15", harmless));
  EXPECT_FALSE(Scheduler("stranger", harmless));
}

TEST_F(Expected, CannotBeAnyBytes) {
  EXPECT_FALSE(Worker("ps8", std::string(64, 'A'), {64}));
  EXPECT_FALSE(Worker("ps8", ""));
  const std::string good = Data(1, 1);
  ASSERT_TRUE(Worker("ps8", good, {5}));
  EXPECT_FALSE(Worker("ps8", good + Field(14, 0), {5})) << "no such field";
  EXPECT_FALSE(Worker("ps8", good + Field(7, 1), {5})) << "twice";
  EXPECT_FALSE(Worker("ps8", good + Varint(11 * 8 + 1) + "12345678", {5})) << "of another kind";
  EXPECT_FALSE(Worker("ps8", good + Varint(11 * 8) + std::string(10, '\x80'), {5})) << "too long";
  EXPECT_FALSE(Worker("ps8", good + Varint(2 * 8 + 2) + Varint(~uint64_t{0}), {5}));
  EXPECT_FALSE(Scheduler("ps8", Field(3, Field(3, 1)))) << "no command";
  EXPECT_FALSE(Scheduler("ps8", Command(kHeartbeat, Field(2, Field(2, 8))))) << "no role";
}

TEST_F(Expected, HaveThePartsThatTheySay) {
  EXPECT_FALSE(Worker("ps8", Data(1, 1)));
  EXPECT_FALSE(Worker("ps8", Data(1, 2), {8, 8}));
  EXPECT_FALSE(Worker("ps8", Data(2, 0))) << "nobody of that number";
  EXPECT_FALSE(Worker("ps8", Data(kNone, 0)));
  EXPECT_FALSE(Server("ps9", Data(0, 1), {8}));
  EXPECT_FALSE(Server("ps9", Data(0, 2), {7, 8}));
  EXPECT_FALSE(Server("ps9", Data(0, 2), {0, 8}));
  EXPECT_FALSE(Server("ps9", Data(0, 3), {16, 8, 4}));
  EXPECT_FALSE(Server("ps9", Data(0, 3), {8, 8, 5}));
  EXPECT_FALSE(Server("ps9", Field(4, 1) + Field(7, 1))) << "no timestamp";
  EXPECT_FALSE(Scheduler("ps9", Field(9, "\x81") + Data(1, 0)));
}

TEST_F(Expected, AreForACustomerThatThereIs) {
  EXPECT_FALSE(Worker("ps8", Data(1, 1, true, 0), {5})) << "ps-lite looks for the number";
  EXPECT_FALSE(Worker("ps8", Data(0, 0, false, 1))) << "of a store that there is not";
  EXPECT_FALSE(Worker("ps8", Data(0, 0, false, kNone)));
  EXPECT_TRUE(Server("ps9", Data(0, 0, true, 7))) << "a worker's number, who hears the answer";
  EXPECT_TRUE(Server("ps9", Data(1, 0, true, 7)));
  const auto nobody = [](int32_t, int32_t) { return false; };
  ExpectedMessages ended(PsLiteRole::kServer, 3, 2, nobody);
  EXPECT_STREQ(ended.WhyNot({"ps9", Data(1, 0), {}}, 10), "it is for nobody");
}

TEST_F(Expected, AnswersAreThoseOfServersToMXNetsOwnStore) {
  EXPECT_FALSE(Worker("ps8", Data(0, 0)));
  EXPECT_FALSE(Worker("ps8", Data(1, 0, false)));
  EXPECT_FALSE(Server("ps9", Data(0, 2, false), {8, 8}));
  EXPECT_FALSE(Server("ps9", Data(1, 0, false)));
}

TEST_F(Expected, CommandsComeFromWhoMayGiveThem) {
  EXPECT_FALSE(Worker("ps8", Command(kTerminate)));
  EXPECT_FALSE(Worker("ps1", Command(kTerminate)));
  EXPECT_FALSE(Worker("ps8", Command(kBarrier, Field(3, 0)))) << "not the scheduler";
  EXPECT_FALSE(Worker("ps8", Command(kBarrier, Field(3, 7), true))) << "not to the scheduler";
  for (const uint64_t group : {uint64_t{0}, uint64_t{8}, ~uint64_t{0}}) {
    EXPECT_FALSE(Scheduler("ps8", Command(kBarrier, Field(3, group), true))) << group;
  }
  const std::string barrier = Field(1, 0) + Field(3, Field(1, kBarrier) + Field(3, 1000));
  EXPECT_TRUE(Worker("ps1", barrier + Field(4, 0))) << "an answer, whose group ps-lite ignores";
  for (const uint64_t request : {uint64_t{2}, uint64_t{1} << 32, ~uint64_t{0}}) {
    EXPECT_FALSE(Worker("ps1", barrier + Field(4, request))) << "ps-lite takes it for true";
  }
  EXPECT_FALSE(Scheduler("ps8", Command(kHeartbeat, Node(9)))) << "another's";
  EXPECT_FALSE(Scheduler("stranger", Command(kHeartbeat, Node(kNone))));
  EXPECT_FALSE(Scheduler("ps8", Command(6)));
  EXPECT_FALSE(Reads(PsLiteRole::kServer, 10, "ps9", Command(kAcknowledge), {5}));
}

TEST_F(Expected, ProcessesAreAddedAsTheSchedulerDoes) {
  EXPECT_FALSE(Worker("ps8", Command(kAddNode, Node(8))));
  EXPECT_FALSE(Worker("stranger", Command(kAddNode, Node(kNone))));
  EXPECT_FALSE(Worker("ps1", Command(kAddNode)));
  EXPECT_FALSE(Worker("ps1", Command(kAddNode, Node(12))));
  EXPECT_FALSE(Worker("ps1", Command(kAddNode, Node(8, 0, ""))));
  for (const char* host : {"!", "10.0.0.1 ", "a/b", "*", "-", ".a", "_a", "%eth0"}) {
    EXPECT_FALSE(Scheduler("stranger", Command(kAddNode, Node(kNone, 0, host)))) << host;
  }
  EXPECT_TRUE(Worker("ps1", Command(kAddNode, Node(8, 0, "[fe80::1%eth0]"))));
  EXPECT_TRUE(Worker("ps1", Command(kAddNode, Node(8, 0, "node-1_a.example"))));
  EXPECT_FALSE(Scheduler("ps9", Command(kAddNode, Node(9, 1, "10.6.6.6")))) << "from elsewhere";
  EXPECT_FALSE(Worker("ps1", Command(kAddNode, Node(8, 0, "host", kNone))));
  EXPECT_FALSE(Scheduler("ps1", Command(kAddNode, Node(8))));
  EXPECT_FALSE(Scheduler("stranger", Command(kAddNode, Node(8))));
  EXPECT_FALSE(Scheduler("stranger", Command(kAddNode, Node(kNone) + Node(kNone))));
}

TEST_F(Expected, ProcessesAskForANumberUntilAllHaveOne) {
  ExpectedMessages expected(PsLiteRole::kScheduler, 1, 1, &HasCustomer, {"10.0.0.1", 8000});
  const auto reads = [&](uint64_t role, uint64_t port) {
    const std::string meta = Command(kAddNode, Node(kNone, role, "10.0.0.1", port));
    return expected.WhyNot({"stranger", meta, {}}, 1) == nullptr;
  };
  EXPECT_FALSE(reads(1, 8000)) << "the scheduler's own address";
  EXPECT_FALSE(reads(2, 9000)) << "a second scheduler";
  EXPECT_TRUE(reads(1, 9000));
  EXPECT_TRUE(reads(0, 9001));
  EXPECT_TRUE(reads(1, 9000)) << "again, as with PS_RESEND";
  EXPECT_FALSE(reads(1, 9002)) << "one too many";
}

TEST_F(Expected, NobodyHasANumberUntilAllHaveAsked) {
  ExpectedMessages expected(PsLiteRole::kScheduler, 1, 1, &HasCustomer, {"10.0.0.1", 8000});
  const std::string heartbeat = Command(kHeartbeat, Node(9));
  const auto reads = [&](const std::string& name, const std::string& meta) {
    return expected.WhyNot({name, meta, {}}, 1) == nullptr;
  };
  for (const uint64_t port : {9000, 9001}) {
    EXPECT_FALSE(reads("ps9", heartbeat));
    EXPECT_FALSE(reads("ps9", Command(kBarrier, Field(3, 4), true)));
    EXPECT_FALSE(reads("ps9", Command(kAddNode, Node(9, 1, "10.0.0.1", port))));
    EXPECT_TRUE(reads("ps1", Command(kBarrier, Field(3, 7), true))) << "its own";
    EXPECT_TRUE(reads("asking", Command(kAddNode, Node(kNone, 0, "10.0.0.1", port))));
  }
  EXPECT_TRUE(reads("ps9", heartbeat));
  EXPECT_FALSE(reads("ps9", Command(kAddNode, Node(9, 1, "10.0.0.1", 8000)))) << "the scheduler's";
}

TEST_F(Expected, TheSchedulerTellsOnceWhoThereIs) {
  ExpectedMessages expected(PsLiteRole::kWorker, 3, 2, &HasCustomer);
  const auto reads = [&](const std::string& nodes, int32_t own) {
    return expected.WhyNot({"ps1", Command(kAddNode, nodes), {}}, own) == nullptr;
  };
  const std::string all = Node(8) + Node(10) + Node(9, 1) + Node(1, 2);
  EXPECT_TRUE(reads(all, kPsLiteNone));
  EXPECT_TRUE(reads(all, 9)) << "again, as with PS_RESEND";
  EXPECT_FALSE(reads(Node(8), 9));
  EXPECT_FALSE(reads(Node(8, 0, "10.6.6.6") + Node(10) + Node(9, 1) + Node(1, 2), 9));
}

TEST_F(Expected, AreOfAsManyProcessesAsAJobMayHave) {
  const auto reads = [](size_t nodes) {
    std::string all;
    for (size_t i = 0; i < nodes; ++i) all += Field(2, Field(1, 0));
    PsLiteMeta meta;
    return meta.Read(Command(kHeartbeat, all));
  };
  EXPECT_TRUE(reads(65536));
  EXPECT_FALSE(reads(65537));
}

TEST_F(Expected, HaveNoMoreBytesThanPsLiteReads) {
  const auto reads = [](size_t bytes) {
    return PsLiteMeta().Read(Field(2, std::string(bytes, 'a')));
  };
  EXPECT_TRUE(reads(size_t{60} << 20));
  EXPECT_FALSE(reads(size_t{64} << 20));
}

TEST_F(Expected, OfAJobThatIsNotKnownAreThoseOfAnyJob) {
  ExpectedMessages any(PsLiteRole::kUnknown, 0, 0, &HasCustomer);
  const std::string data = Data(1, 0);
  EXPECT_EQ(any.WhyNot({"ps99", data, {}}, kPsLiteNone), nullptr);
  EXPECT_NE(any.WhyNot({"stranger", data, {}}, kPsLiteNone), nullptr);
  EXPECT_NE(any.WhyNot({"ps99", "AAAA", {}}, kPsLiteNone), nullptr);
}

TEST(EarlyBarriers, AreThoseBeforeTheSchedulerHasComeItself) {
  const std::string barrier = Command(kBarrier, Field(3, uint64_t{7}), true);
  const std::string answer = Command(kBarrier, Field(3, uint64_t{0}));
  EarlyBarriers early(true);
  EXPECT_TRUE(early.IsEarly({"ps8", barrier, {}}, 1));
  EXPECT_TRUE(early.IsEarly({"ps8", barrier, {}}, 1)) << "sent again";
  EXPECT_FALSE(early.IsEarly({"ps9", Command(kHeartbeat, Node(9)), {}}, 1));
  EXPECT_FALSE(early.IsEarly({"ps1", answer, {}}, 1));
  EXPECT_TRUE(early.IsEarly({"ps9", barrier, {}}, 1));
  EXPECT_FALSE(early.IsEarly({"ps1", barrier, {}}, 1));
  EXPECT_FALSE(early.IsEarly({"ps8", barrier, {}}, 1));
  EarlyBarriers others(false);
  EXPECT_FALSE(others.IsEarly({"ps8", barrier, {}}, 1));
}

}  // namespace
}  // namespace kvstore_ext
