// Threads that work off tasks by priority, so that a large key holds nobody up who is more urgent.
#pragma once

#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "support/send_queue.h"

namespace kvstore_ext {

// Thread-safe. Tasks must not throw.
class TaskThreads {
 public:
  using Task = std::function<void()>;

  // Below that of every key.
  static constexpr int kLast = std::numeric_limits<int>::min();

  explicit TaskThreads(int count);
  ~TaskThreads() { Stop(); }

  // Runs a task after those of higher priority; never once this has been stopped.
  void Run(int priority, Task task);

  // Drops tasks that have not begun and waits for those that have. Not from a task.
  void Stop();

 private:
  void RunTasks();

  SendQueue<Task> tasks_;
  std::vector<std::thread> threads_;  // last: they use the queue
};

}  // namespace kvstore_ext
