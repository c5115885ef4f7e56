#include "support/task_threads.h"

#include <utility>

namespace kvstore_ext {

TaskThreads::TaskThreads(int count, Failed failed) : failed_(std::move(failed)) {
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { RunTasks(); });
  } catch (...) {  // there can be no more of them
    Stop();
    throw;
  }
}

void TaskThreads::Run(int priority, Task task) { tasks_.Push(priority, 0, std::move(task)); }

void TaskThreads::Stop() {
  tasks_.Close();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void TaskThreads::RunTasks() {
  Task task;
  while (tasks_.Pop(&task)) {
    Do(task);
    task = nullptr;  // what it keeps alive may be large
  }
}

}  // namespace kvstore_ext
