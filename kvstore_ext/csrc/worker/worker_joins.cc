// How a worker comes to its servers: they greet it, and it joins the others.
#include "support/ranks.h"
#include "worker/worker.h"

namespace kvstore_ext {

std::vector<int> Worker::AwaitServers(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] {
    return hosts_.size() == links_.size() || !failure_.reason().empty();
  });
  const std::set<int> missing = Missing(RanksOf(hosts_), options_.servers);
  return {missing.begin(), missing.end()};
}

void Worker::Join() {
  for (int server = 0; server < options_.servers; ++server) {
    const uint64_t memory = options_.shared_memory ? HandInMemory(server) : 0;
    links_[server]->SendControl(JoinMessage(options_.configuration, options_.deterministic, memory,
                                            options_.window_bytes > 0));
  }
  Await(welcomed_, links_.size(), "answered that all workers have opened the same store",
        options_.limits.timeout);
  if (options_.rank != 0) return;
  // Before the first data, whose results are to find it, and while nothing disturbs the measuring.
  AnnounceWindow(WindowEstimator::Initial(options_.slice_bytes, options_.window_bytes));
  for (auto& link : links_) link->Measure();
}

// Returns the number of memory that the server now has, or 0: it is of another host.
uint64_t Worker::HandInMemory(int server) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t door = doors_[server];
  lock.unlock();
  std::shared_ptr<SharedMemory> memory = MemoryDoor::HandIn(door, options_.rank);
  if (memory == nullptr) return 0;
  lock.lock();
  memories_[server] = std::move(memory);
  return memories_[server]->number();
}

std::pair<uint64_t, uint64_t> Worker::SharedBytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::pair<uint64_t, uint64_t> bytes;
  for (const auto& entry : memories_) {
    bytes.first += entry.second->bytes_put();
    bytes.second += entry.second->bytes_taken();
  }
  return bytes;
}

}  // namespace kvstore_ext
