#include "transport/memory_door.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "support/unguessable.h"

namespace kvstore_ext {
namespace {

constexpr int kWaiting = 4096;  // as many workers may have come before one is taken

// Closes it in the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  const int number_;
};

int LocalSocket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// A name without a file: it belongs to the network namespace, and ends with the socket.
struct Address {
  explicit Address(uint64_t number) {
    address.sun_family = AF_UNIX;
    const int length =
        std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "kvstore_ext-%016llx",
                      static_cast<unsigned long long>(number));
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t size;
};

bool IsOwnUsers(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

// A worker's rank, with the descriptor of its memory.
class Handover {
 public:
  Handover() : part_{&rank, sizeof rank} {
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_;
    message_.msg_controllen = sizeof control_;
  }

  bool Send(int connection, int descriptor) {
    cmsghdr* header = CMSG_FIRSTHDR(&message_);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return sendmsg(connection, &message_, MSG_NOSIGNAL) == sizeof rank;
  }

  // The descriptor, or -1; then errno is EAGAIN where it is still to come.
  int Receive(int connection) {
    message_.msg_controllen = CMSG_LEN(sizeof(int));  // one, and not what alignment leaves room for
    const ssize_t bytes = recvmsg(connection, &message_, MSG_CMSG_CLOEXEC);
    if (bytes < 0) return -1;
    const cmsghdr* header = CMSG_FIRSTHDR(&message_);
    int descriptor = -1;
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    }
    if (bytes != sizeof rank && descriptor != -1) {
      close(descriptor);
      descriptor = -1;
    }
    errno = 0;
    return descriptor;
  }

  int32_t rank = -1;

 private:
  iovec part_;
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
  msghdr message_{};
};

}  // namespace

MemoryDoor::MemoryDoor() {
  const uint64_t number = Unguessable();
  const Address address(number);
  socket_ = LocalSocket();
  if (socket_ < 0 || number == 0) return;
  if (bind(socket_, address.get(), address.size) != 0 || listen(socket_, kWaiting) != 0) return;
  number_ = number;
}

MemoryDoor::~MemoryDoor() {
  for (int visitor : visitors_) close(visitor);
  if (socket_ >= 0) close(socket_);
}

std::shared_ptr<SharedMemory> MemoryDoor::Take(int worker, uint64_t memory_number) {
  for (int turn = 0; number_ != 0 && turn < kWaiting; ++turn) {
    const int visitor = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (visitor < 0) break;
    if (IsOwnUsers(visitor)) {
      visitors_.push_back(visitor);
    } else {
      close(visitor);
    }
  }
  // Others may have come, and not have handed in theirs yet.
  for (size_t left = visitors_.size(); left > 0; --left) {
    const int visitor = visitors_.front();
    visitors_.pop_front();
    if (!TakeFrom(visitor)) visitors_.push_back(visitor);
  }
  const auto found = taken_.find(worker);
  if (found == taken_.end()) return nullptr;
  std::shared_ptr<SharedMemory> memory = std::move(found->second);
  taken_.erase(found);
  return memory != nullptr && memory->number() == memory_number ? memory : nullptr;
}

// False while it may still hand something in.
bool MemoryDoor::TakeFrom(int visitor) {
  Handover handover;
  const Descriptor memory(handover.Receive(visitor));
  if (!memory.ok() && errno == EAGAIN) return false;
  if (memory.ok()) taken_[handover.rank] = SharedMemory::Open(memory.get());
  close(visitor);
  return true;
}

std::shared_ptr<SharedMemory> MemoryDoor::HandIn(uint64_t number, int worker) {
  if (number == 0) return nullptr;
  const Descriptor connection(LocalSocket());
  const Address address(number);
  if (!connection.ok() || connect(connection.get(), address.get(), address.size) != 0) {
    return nullptr;
  }
  if (!IsOwnUsers(connection.get())) return nullptr;
  int number_of_memory = -1;
  std::shared_ptr<SharedMemory> memory = SharedMemory::Make(&number_of_memory);
  const Descriptor descriptor(number_of_memory);
  if (memory == nullptr) return nullptr;
  Handover handover;
  handover.rank = worker;
  return handover.Send(connection.get(), descriptor.get()) ? memory : nullptr;
}

}  // namespace kvstore_ext
