// What comes damaged ends the job, and says between which hosts that was.
#include "transport/checksum.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cluster.h"
#include "scheduler_end.h"
#include "support/crc32c.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

constexpr uint64_t kElements = 1000;

std::string Bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(Mix(i));
  return bytes;
}

TEST(Crc32c, IsThatOfTheStandard) {
  const std::string digits = "123456789";
  const std::string zeros(32, '\0');
  for (const auto function : {Crc32c, Crc32cByTable}) {
    EXPECT_EQ(function(digits.data(), digits.size(), 0), 0xe3069283U);
    EXPECT_EQ(function(zeros.data(), zeros.size(), 0), 0x8a9136aaU);
    EXPECT_EQ(function(nullptr, 0, 0), 0U);
  }
}

TEST(Crc32c, TheInstructionAndTheTableAgree) {
  const std::string bytes = Bytes(20000);
  for (const size_t begin : {0, 1, 7}) {
    for (const size_t count : {1, 7, 8, 9, 1023, 1024, 3071, 3072, 3073, 6144, 9999, 19990}) {
      EXPECT_EQ(Crc32c(bytes.data() + begin, count), Crc32cByTable(bytes.data() + begin, count))
          << count << " from " << begin;
    }
  }
}

TEST(Crc32c, GoesOnFromWhatCameBefore) {
  const std::string bytes = Bytes(10000);
  const uint32_t whole = Crc32c(bytes.data(), bytes.size());
  for (const size_t first : {0, 5, 4096, 10000}) {
    const uint32_t before = Crc32c(bytes.data(), first);
    EXPECT_EQ(Crc32c(bytes.data() + first, bytes.size() - first, before), whole);
  }
}

Message Sealed() {
  Message message = ControlMessage(MessageType::kPush, "settings");
  message.payload = Buffer::Allocate(40);
  std::memset(message.payload.data.get(), 3, 40);
  message.header.whole = 40;
  message.header.checksum = ChecksumOf(message);
  return message;
}

TEST(Checksum, NoBitCanChange) {
  EXPECT_NO_THROW(CheckUndamaged(Sealed()));
  for (size_t bit = 0; bit < 8 * sizeof(Header); ++bit) {
    Message message = Sealed();
    reinterpret_cast<char*>(&message.header)[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THROW(CheckUndamaged(message), Damaged) << "bit " << bit << " of the header";
  }
  for (size_t bit = 0; bit < 8 * 40; ++bit) {
    Message message = Sealed();
    message.payload.data.get()[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THROW(CheckUndamaged(message), Damaged) << "bit " << bit << " of the payload";
  }
  Message message = Sealed();
  message.text[3] ^= 1;
  EXPECT_THROW(CheckUndamaged(message), Damaged);
}

TEST(Checksum, AMessageWithoutOneIsNotLookedAt) {
  Message message = Sealed();
  message.header.checksum = 0;
  message.text[3] ^= 1;
  EXPECT_NO_THROW(CheckUndamaged(message));
}

TEST(Checksum, TheGateTellsDamageFromWhatNobodySends) {
  Gate gate(Side::kServer, nullptr, [](const Message& message) { return message.peer == 0; });
  Message message = Sealed();
  EXPECT_TRUE(gate.Admits(message));
  message.header.whole = 41;
  EXPECT_THROW(gate.Admits(message), Damaged);
  message.peer = kNobody;
  EXPECT_FALSE(gate.Admits(message));
}

TEST(Checksum, NobodyElseEndsAJobByAWrongOne) {
  SchedulerEnd end(0, 5, 0);
  Cluster cluster;
  cluster.Join({kElements});
  Message sign = ControlMessage(MessageType::kCredit);
  sign.header.checksum = 1;
  sign.peer = 0;
  end.other.Send(sign);
  cluster.ForgeFromWorker(1, 0, sign);
  EXPECT_EQ(end.scheduler.AwaitFailure(0.2), "");
  EXPECT_EQ(cluster.server(0).AwaitFailure(0.2), "");
}

// What one worker of a job hears where a bit of a payload of this type changes, or changes not.
std::string ReasonWhere(MessageType damaged, bool checksum) {
  ClusterOptions options;
  options.checksum = checksum;
  options.slice_bytes = 2000;
  std::atomic<int> left{1};
  options.damage = [&](Message* message) {
    if (message->header.type != damaged || message->header.round != 2 || left-- != 1) return;
    Buffer copy = Buffer::Allocate(message->payload.size);
    std::memcpy(copy.data.get(), message->payload.data.get(), copy.size);
    copy.data.get()[17] ^= 4;
    message->payload = copy;
  };
  // What a failed operation has read may still be read.
  std::vector<std::vector<float>> values(options.workers, std::vector<float>(kElements, 1));
  Cluster cluster(options);
  cluster.Join({kElements});
  std::string reason;
  cluster.OnEveryKey([&](int rank, Worker* worker, uint64_t key) {
    for (int round = 0; round < 4; ++round) {
      const std::string error = Exchange(worker, key, values[rank], &values[rank]);
      if (rank == 1 && reason.empty()) reason = error;
    }
  });
  return reason;
}

TEST(Checksum, ADamagedPushOrResultEndsTheJob) {
  for (const MessageType type : {MessageType::kPush, MessageType::kResult}) {
    const std::string reason = ReasonWhere(type, true);
    EXPECT_NE(reason.find(", round 2, was damaged on its way: "), std::string::npos) << reason;
    EXPECT_NE(reason.find("; it came from "), std::string::npos) << reason;
    EXPECT_EQ(ReasonWhere(type, false), "");
  }
}

}  // namespace
}  // namespace kvstore_ext
