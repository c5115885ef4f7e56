#include "transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/unguessable.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

// What becomes of a block. It is kFree, as the kernel gives memory; kInUse, while its writer fills
// it; any other number, its ticket, until the reader comes for it; and kInUse again, while that has
// it.
constexpr uint64_t kFree = 0;
constexpr uint64_t kInUse = 1;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Some kernels are told to refuse memory that could be executed, and others do not know the flag.
int NewFile() {
  constexpr unsigned kNeverExecuted = 8;  // MFD_NOEXEC_SEAL, of Linux 6.3
  const int file = memfd_create("kvstore_ext", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNeverExecuted);
  if (file >= 0 || errno != EINVAL) return file;
  return memfd_create("kvstore_ext", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

}  // namespace

// As it lies in memory.
struct SharedMemory::Layout {
  // Both processes write these, of neighbouring blocks at the same time.
  struct alignas(64) State {
    std::atomic<uint64_t> ticket;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "two processes have it");

  uint64_t number;
  State states[2][kBlocks];
  alignas(4096) char blocks[2][kBlocks][kBlockBytes];
};

SharedMemory::SharedMemory(void* memory, bool is_maker)
    : layout_(static_cast<Layout*>(memory)), own_(is_maker ? 0 : 1) {
  if (is_maker) layout_->number = Unguessable();
}

uint64_t SharedMemory::number() const { return layout_->number; }

SharedMemory::~SharedMemory() { munmap(layout_, sizeof(Layout)); }

void* SharedMemory::Map(int descriptor) {
  void* memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return nullptr;
  // A script's own forks have nothing to do with it.
  madvise(memory, sizeof(Layout), MADV_DONTFORK);
  return memory;
}

std::shared_ptr<SharedMemory> SharedMemory::Make(int* descriptor) {
  *descriptor = NewFile();
  if (*descriptor < 0) return nullptr;
  const bool made = fallocate(*descriptor, 0, 0, sizeof(Layout)) == 0 &&
                    fcntl(*descriptor, F_ADD_SEALS, kSeals) == 0;
  if (void* memory = made ? Map(*descriptor) : nullptr) {
    return std::shared_ptr<SharedMemory>(new SharedMemory(memory, true));
  }
  close(*descriptor);
  *descriptor = -1;
  return nullptr;
}

// Without its seals a file could become shorter, and reading what is no longer there ends a
// process.
std::shared_ptr<SharedMemory> SharedMemory::Open(int descriptor) {
  struct stat file{};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(descriptor, &file) != 0) return nullptr;
  if (file.st_size != static_cast<off_t>(sizeof(Layout))) return nullptr;
  void* memory = Map(descriptor);
  if (memory == nullptr) return nullptr;
  return std::shared_ptr<SharedMemory>(new SharedMemory(memory, false));
}

// The first block that is free, so that few are used in turn, and stay in the caches.
std::optional<Place> SharedMemory::Put(const Buffer& payload) {
  if (payload.size > kBlockBytes) return std::nullopt;
  for (size_t block = 0; block < kBlocks; ++block) {
    std::atomic<uint64_t>& state = layout_->states[own_][block].ticket;
    uint64_t free = kFree;
    if (state.load(std::memory_order_relaxed) != kFree) continue;
    if (!state.compare_exchange_strong(free, kInUse, std::memory_order_acquire)) continue;
    std::memcpy(layout_->blocks[own_][block], payload.data.get(), payload.size);
    const uint64_t ticket = Unguessable();
    state.store(ticket, std::memory_order_release);
    if (ticket == kFree) return std::nullopt;
    bytes_put_ += payload.size;
    return Place{static_cast<uint32_t>(block), static_cast<uint32_t>(payload.size), ticket};
  }
  return std::nullopt;
}

Buffer SharedMemory::At(const Place& place) {
  const int theirs = 1 - own_;
  Expect(place.block < kBlocks && place.bytes <= kBlockBytes, "there is no such shared memory");
  std::atomic<uint64_t>& state = layout_->states[theirs][place.block].ticket;
  uint64_t ticket = place.ticket;
  Expect(ticket > kInUse && state.compare_exchange_strong(ticket, kInUse),
         "its payload is not in the shared memory");
  bytes_taken_ += place.bytes;
  const auto release = [self = shared_from_this(), &state](const char*) {
    state.store(kFree, std::memory_order_release);
  };
  return {place.bytes, place.bytes,
          std::shared_ptr<char>(layout_->blocks[theirs][place.block], release)};
}

}  // namespace kvstore_ext
