// Memory that a worker and a server of one host have in common. A payload that lies in it needs no
// network: the message says where it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "support/buffer.h"
#include "transport/place.h"

namespace kvstore_ext {

// Each of the two has blocks that it alone fills. A block belongs to its reader from Put until the
// last Buffer of it is gone. While no block is free, Put has no room, and the payload travels.
//
// A ticket is a number that nobody can guess: what a stranger says of a place changes nothing. The
// two trust each other: a writer could change what is being read.
// Thread-safe.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // A slice of the default size, in whole pages. A longer payload travels.
  static constexpr size_t kBlockBytes = 49 * 4096;
  static constexpr size_t kBlocks = 16;  // each way

  // Memory without a name, and the descriptor by which another process opens it; nothing where the
  // system has none to give. It has all its pages from the beginning: to touch one that there is no
  // memory for would end the process.
  static std::shared_ptr<SharedMemory> Make(int* descriptor);

  // What Make has made in another process. Nothing for anything else, or for what its maker could
  // still cut short. The descriptor remains the caller's.
  static std::shared_ptr<SharedMemory> Open(int descriptor);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Copies a payload to where the peer finds it. Nothing where there is no room.
  std::optional<Place> Put(const Buffer& payload);

  // What the peer has put there, which is not to be changed. Throws Unfit where there is none, or
  // it was asked for before.
  Buffer At(const Place& place);

  // By which the other end knows that it has been given this one.
  uint64_t number() const;

  uint64_t bytes_put() const { return bytes_put_; }
  uint64_t bytes_taken() const { return bytes_taken_; }

 private:
  struct Layout;

  SharedMemory(void* memory, bool is_maker);
  static void* Map(int descriptor);

  Layout* const layout_;
  const int own_;  // half of the blocks
  std::atomic<uint64_t> bytes_put_{0}, bytes_taken_{0};
};

}  // namespace kvstore_ext
