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

  explicit TaskThreads(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { RunTasks(); });
  }
  ~TaskThreads() { Stop(); }

  // Runs a task after those of higher priority; never once this has been stopped.
  void Run(int priority, Task task) { tasks_.Push(priority, 0, std::move(task)); }

  // Drops tasks that have not begun and waits for those that have. Not from a task.
  void Stop() {
    tasks_.Close();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void RunTasks() {
    Task task;
    while (tasks_.Pop(&task)) {
      task();
      task = nullptr;  // what it keeps alive may be large
    }
  }

  SendQueue<Task> tasks_;
  std::vector<std::thread> threads_;  // last: they use the queue
};

}  // namespace kvstore_ext
