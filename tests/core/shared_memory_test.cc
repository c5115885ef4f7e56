// Payloads in memory that two processes of one host have.
#include "transport/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "transport/gate.h"
#include "transport/memory_door.h"

namespace kvstore_ext {
namespace {

Buffer Bytes(size_t count, char value) {
  Buffer buffer = Buffer::Allocate(count);
  std::memset(buffer.data.get(), value, count);
  return buffer;
}

bool IsAll(const Buffer& buffer, size_t count, char value) {
  const std::string expected(count, value);
  return buffer.size == count && std::memcmp(buffer.data.get(), expected.data(), count) == 0;
}

// A connection to a door, as another program would make it.
int Visit(const MemoryDoor& door) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "kvstore_ext-%016llx",
                    static_cast<unsigned long long>(door.number()));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const int visitor = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const int connected = connect(visitor, reinterpret_cast<const sockaddr*>(&address), size);
  EXPECT_EQ(connected, 0);
  return connected == 0 ? visitor : -1;
}

class TwoEnds : public testing::Test {
 protected:
  TwoEnds() {
    ours_ = MemoryDoor::HandIn(door_.number(), 3);
    theirs_ = ours_ ? door_.Take(3, ours_->number()) : nullptr;
  }
  void SetUp() override {
    ASSERT_NE(ours_, nullptr);
    ASSERT_NE(theirs_, nullptr);
  }

  MemoryDoor door_;
  std::shared_ptr<SharedMemory> ours_, theirs_;
};

TEST_F(TwoEnds, EachReadsWhatTheOtherHasPut) {
  const std::optional<Place> there = ours_->Put(Bytes(5000, 'a'));
  const std::optional<Place> back = theirs_->Put(Bytes(7, 'b'));
  ASSERT_TRUE(there && back);
  EXPECT_TRUE(IsAll(theirs_->At(*there), 5000, 'a'));
  EXPECT_TRUE(IsAll(ours_->At(*back), 7, 'b'));
  EXPECT_EQ(ours_->bytes_put(), 5000U);
  EXPECT_EQ(theirs_->bytes_taken(), 5000U);
  EXPECT_EQ(ours_->bytes_taken(), 7U);
}

TEST_F(TwoEnds, ABlockIsTheReadersUntilItHasReadAll) {
  std::vector<Place> places;
  for (size_t i = 0; i < SharedMemory::kBlocks; ++i) {
    places.push_back(*ours_->Put(Bytes(SharedMemory::kBlockBytes, static_cast<char>(i))));
  }
  EXPECT_FALSE(ours_->Put(Bytes(1, 'x'))) << "although all blocks are full";
  Buffer whole = theirs_->At(places[5]);
  const Buffer part = whole.Range(100, 50);
  whole = Buffer();
  EXPECT_FALSE(ours_->Put(Bytes(1, 'x'))) << "although a part is still being read";
  EXPECT_TRUE(IsAll(part, 50, 5));
  {
    const Buffer last = theirs_->At(places[7]);
  }
  const std::optional<Place> next = ours_->Put(Bytes(1, 'x'));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->block, places[7].block);
  EXPECT_FALSE(ours_->Put(Bytes(1, 'x')));
}

TEST_F(TwoEnds, WhatIsLongerThanABlockTravels) {
  EXPECT_FALSE(ours_->Put(Bytes(SharedMemory::kBlockBytes + 1, 'x')));
}

TEST_F(TwoEnds, APlaceIsGoodOnce) {
  const Place place = *ours_->Put(Bytes(100, 'a'));
  const Buffer first = theirs_->At(place);
  EXPECT_THROW(theirs_->At(place), Unfit);
  EXPECT_TRUE(IsAll(first, 100, 'a'));
}

TEST_F(TwoEnds, AStrangersPlaceChangesNothing) {
  const Place right = *ours_->Put(Bytes(100, 'a'));
  for (const Place& wrong : {
           Place{right.block, right.bytes, right.ticket + 1},
           Place{right.block, right.bytes, 0},
           Place{right.block, right.bytes, 1},
           Place{right.block + 1, right.bytes, right.ticket},
           Place{right.block + 1, right.bytes, 0},
           Place{right.block + 1, right.bytes, 1},
           Place{SharedMemory::kBlocks, right.bytes, right.ticket},
           Place{UINT32_MAX, right.bytes, right.ticket},
           Place{right.block, SharedMemory::kBlockBytes + 1, right.ticket},
           Place{right.block, UINT32_MAX, right.ticket},
       }) {
    EXPECT_THROW(theirs_->At(wrong), Unfit);
  }
  EXPECT_THROW(ours_->At(right), Unfit) << "as it is the other's to read";
  EXPECT_TRUE(IsAll(theirs_->At(right), 100, 'a'));
}

TEST_F(TwoEnds, ManyThreadsFillIt) {
  constexpr int kThreads = 4, kRounds = 300;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const char value = static_cast<char>(thread * 31 + round);
        const auto place = ours_->Put(Bytes(3000, value));
        ASSERT_TRUE(place) << "as many blocks are free as threads want";
        EXPECT_TRUE(IsAll(theirs_->At(*place), 3000, value));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(SharedMemory, OutlivesTheDoorAndTheOtherEnd) {
  auto door = std::make_unique<MemoryDoor>();
  std::shared_ptr<SharedMemory> ours = MemoryDoor::HandIn(door->number(), 0);
  std::shared_ptr<SharedMemory> theirs = door->Take(0, ours->number());
  ASSERT_TRUE(ours && theirs);
  door.reset();
  const Place place = *ours->Put(Bytes(100, 'a'));
  ours.reset();
  const Buffer payload = theirs->At(place);
  theirs.reset();
  EXPECT_TRUE(IsAll(payload, 100, 'a'));
}

TEST(SharedMemory, IsRefusedWhereItsMakerCouldCutItShort) {
  int descriptor = -1;
  const std::shared_ptr<SharedMemory> made = SharedMemory::Make(&descriptor);
  ASSERT_NE(made, nullptr);
  EXPECT_NE(SharedMemory::Open(descriptor), nullptr);
  EXPECT_NE(ftruncate(descriptor, 0), 0) << "of what was sealed";
  const off_t size = lseek(descriptor, 0, SEEK_END);
  close(descriptor);

  const int open = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(open, size), 0);
  EXPECT_EQ(SharedMemory::Open(open), nullptr);
  close(open);

  const int shorter = memfd_create("shorter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(shorter, size - 1), 0);
  ASSERT_EQ(fcntl(shorter, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(SharedMemory::Open(shorter), nullptr);
  close(shorter);

  const int null = ::open("/dev/null", O_RDWR);
  EXPECT_EQ(SharedMemory::Open(null), nullptr);
  close(null);
}

TEST(MemoryDoor, KeepsWorkersApart) {
  MemoryDoor door;
  const auto first = MemoryDoor::HandIn(door.number(), 1);
  const auto second = MemoryDoor::HandIn(door.number(), 2);
  ASSERT_TRUE(first && second);
  const auto of_second = door.Take(2, second->number());
  ASSERT_NE(of_second, nullptr);
  EXPECT_TRUE(IsAll(of_second->At(*second->Put(Bytes(10, 'b'))), 10, 'b'));
  const auto of_first = door.Take(1, first->number());
  ASSERT_NE(of_first, nullptr);
  EXPECT_TRUE(IsAll(of_first->At(*first->Put(Bytes(10, 'a'))), 10, 'a'));
  EXPECT_EQ(door.Take(1, first->number()), nullptr) << "a second time";
}

TEST(MemoryDoor, TakesNoOtherMemoryThanTheOneThatIsMeant) {
  MemoryDoor door;
  const auto meant = MemoryDoor::HandIn(door.number(), 1);
  const auto strangers = MemoryDoor::HandIn(door.number(), 1);
  ASSERT_TRUE(meant && strangers);
  EXPECT_NE(meant->number(), strangers->number());
  EXPECT_EQ(door.Take(1, meant->number()), nullptr) << "as the other one came last";
}

TEST(MemoryDoor, WaitsForWhoHasComeAndHandsInLater) {
  MemoryDoor door;
  const int late = Visit(door);
  const auto second = MemoryDoor::HandIn(door.number(), 2);
  EXPECT_NE(door.Take(2, second->number()), nullptr);
  EXPECT_EQ(door.Take(1, 1), nullptr);

  int descriptor = -1;
  const auto first = SharedMemory::Make(&descriptor);
  int32_t rank = 1;
  iovec part = {&rank, sizeof rank};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  ASSERT_EQ(sendmsg(late, &message, 0), static_cast<ssize_t>(sizeof rank));
  close(descriptor);
  close(late);
  const auto of_first = door.Take(1, first->number());
  ASSERT_NE(of_first, nullptr);
  EXPECT_TRUE(IsAll(of_first->At(*first->Put(Bytes(10, 'a'))), 10, 'a'));
}

TEST(MemoryDoor, DropsWhoHandsInNothing) {
  MemoryDoor door;
  const int empty = Visit(door);
  ASSERT_EQ(send(empty, "none", 4, 0), 4);
  EXPECT_EQ(door.Take(0, 1), nullptr);
  char answer = 0;
  EXPECT_LE(recv(empty, &answer, 1, 0), 0) << "as the door has closed the connection";
  close(empty);
}

constexpr uid_t kNobody = 65534;

// What a child process finds, 0 or 1, while this one goes on with `meanwhile`; 2 where it cannot
// become somebody else.
int InAChild(const std::function<bool()>& becomes, const std::function<bool()>& find,
             const std::function<void()>& meanwhile) {
  const pid_t child = fork();
  if (child == 0) _exit(!becomes() ? 2 : find() ? 1 : 0);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    meanwhile();
    usleep(1000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whether the door keeps a visitor's connection for so long, who hands nothing in yet.
bool IsLetIn(const MemoryDoor& door, int seconds) {
  const int visitor = Visit(door);
  if (visitor < 0) _exit(3);  // of a child, whose failures nobody hears of otherwise
  const timeval limit = {seconds, 0};
  setsockopt(visitor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char answer = 0;
  return recv(visitor, &answer, 1, 0) < 0 && errno == EAGAIN;
}

TEST(MemoryDoor, LetsInNobodyOfAnotherUserOrNetwork) {
  MemoryDoor door;
  const auto look = [&door] { door.Take(0, 1); };
  const auto itself = [] { return true; };
  EXPECT_EQ(InAChild(itself, [&door] { return IsLetIn(door, 1); }, look), 1);
  const auto hands_in = [&door] { return MemoryDoor::HandIn(door.number(), 0) != nullptr; };
  EXPECT_EQ(InAChild(itself, hands_in, look), 1);
  const auto nobody = [] { return setuid(kNobody) == 0; };
  const auto elsewhere = [] { return unshare(CLONE_NEWNET) == 0; };
  const int of_nobody = InAChild(nobody, [&door] { return IsLetIn(door, 20); }, look);
  const int of_elsewhere = InAChild(elsewhere, hands_in, look);
  constexpr int kCannot = 2;
  EXPECT_TRUE(of_nobody == 0 || of_nobody == kCannot) << of_nobody;
  EXPECT_TRUE(of_elsewhere == 0 || of_elsewhere == kCannot) << of_elsewhere;
  if (of_nobody == kCannot || of_elsewhere == kCannot)
    GTEST_SKIP() << "root alone becomes somebody else";
}

TEST(MemoryDoor, HandsInNothingToAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone becomes somebody else";
  int told[2] = {}, over[2] = {};
  ASSERT_EQ(pipe(told) + pipe(over), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(over[1]);
    const bool other = setuid(kNobody) == 0;
    const MemoryDoor door;
    const uint64_t number = other ? door.number() : 0;
    char end = 0;
    const bool is_told = write(told[1], &number, sizeof number) == sizeof number;
    _exit(is_told && read(over[0], &end, 1) == 0 ? 0 : 1);
  }
  close(over[0]);
  uint64_t number = 0;
  EXPECT_EQ(read(told[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
  EXPECT_NE(number, 0U);
  EXPECT_EQ(MemoryDoor::HandIn(number, 0), nullptr);
  for (const int end : {told[0], told[1], over[1]}) close(end);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(MemoryDoor, IsOutOfReachWhereThereIsNone) {
  EXPECT_EQ(MemoryDoor::HandIn(0, 0), nullptr);
  auto door = std::make_unique<MemoryDoor>();
  const uint64_t number = door->number();
  EXPECT_NE(number, 0U);
  EXPECT_EQ(MemoryDoor::HandIn(number + 2, 0), nullptr);
  EXPECT_EQ(door->Take(0, 1), nullptr) << "as nobody has come";
  door.reset();
  EXPECT_EQ(MemoryDoor::HandIn(number, 0), nullptr);
}

}  // namespace
}  // namespace kvstore_ext
