// In place of support/task_threads.cc and support/watchdog.cc, for one thread.
#include "by_hand.h"

#include <map>
#include <utility>

#include "support/task_threads.h"
#include "support/watchdog.h"

namespace kvstore_ext {
namespace {

// Of all that there are now. Each returns whether it had a task.
std::map<const TaskThreads*, std::function<bool()>> tasks;
std::map<const Watchdog*, std::function<void()>> checks;

}  // namespace

TaskThreads::TaskThreads(int, Failed failed) : failed_(std::move(failed)) {
  tasks[this] = [this] {
    Task task;
    if (!tasks_.TryPop(&task)) return false;
    Do(task);
    return true;
  };
}

void TaskThreads::Run(int priority, Task task) { tasks_.Push(priority, 0, std::move(task)); }

void TaskThreads::Stop() {
  tasks_.Close();
  tasks.erase(this);
}

void Watchdog::Start(double, std::function<void()> check, Failed failed) {
  check_ = std::move(check);
  failed_ = std::move(failed);
  checks[this] = [this] { Check(); };
}

void Watchdog::StopWithin(double) {
  stopping_ = true;
  checks.erase(this);
}

void Watchdog::Stop() { StopWithin(0); }

void RunTasks() {
  for (bool more = true; more;) {
    more = false;
    for (const auto& each : tasks) more = each.second() || more;
  }
}

void RunChecks() {
  for (const auto& each : checks) each.second();
}

}  // namespace kvstore_ext
