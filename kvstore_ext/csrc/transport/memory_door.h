// How a worker hands memory to a server of its own host.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "transport/shared_memory.h"

namespace kvstore_ext {

// A server's socket that only processes of its host reach, and of these only those of its own
// network namespace and user. Whoever does not get in, or finds another process, exchanges its
// payloads by the network. No call waits.
class MemoryDoor {
 public:
  // Without a number where there can be no such socket.
  MemoryDoor();
  ~MemoryDoor();
  MemoryDoor(const MemoryDoor&) = delete;
  MemoryDoor& operator=(const MemoryDoor&) = delete;

  // By which workers find it; 0 where nobody can.
  uint64_t number() const { return number_; }

  // The memory with this number that a worker has handed in, once; nothing where it has not. One
  // thread at a time.
  std::shared_ptr<SharedMemory> Take(int worker, uint64_t memory_number);

  // At a worker: memory that the server with this door can take by the time that the call is over;
  // nothing where it is out of reach.
  static std::shared_ptr<SharedMemory> HandIn(uint64_t number, int worker);

 private:
  bool TakeFrom(int visitor);

  uint64_t number_ = 0;
  int socket_ = -1;
  std::deque<int> visitors_;  // connections that have handed in nothing yet
  std::map<int, std::shared_ptr<SharedMemory>> taken_;  // by worker
};

}  // namespace kvstore_ext
