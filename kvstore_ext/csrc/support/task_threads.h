// Threads that work off tasks by priority, so that a large key holds nobody up who is more urgent.
#pragma once

#include <exception>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "support/send_queue.h"

namespace kvstore_ext {

// Thread-safe.
class TaskThreads {
 public:
  using Task = std::function<void()>;
  using Failed = std::function<void(const std::exception&)>;

  // Below that of every key.
  static constexpr int kLast = std::numeric_limits<int>::min();

  // `failed` hears of what a task throws; without it tasks must not throw.
  explicit TaskThreads(int count, Failed failed = nullptr);
  ~TaskThreads() { Stop(); }

  // Runs a task after those of higher priority; never once this has been stopped.
  void Run(int priority, Task task);

  // Drops tasks that have not begun and waits for those that have. Not from a task.
  void Stop();

 private:
  void RunTasks();

  void Do(const Task& task) const {
    if (failed_ == nullptr) return task();
    try {
      task();
    } catch (const std::exception& error) {
      failed_(error);
    }
  }

  const Failed failed_;
  SendQueue<Task> tasks_;
  std::vector<std::thread> threads_;  // last: they use the above
};

}  // namespace kvstore_ext
