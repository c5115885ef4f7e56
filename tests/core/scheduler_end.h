// The scheduler of one server, and a process that speaks to it.
#pragma once

#include <memory>

#include "cluster.h"
#include "server/scheduler.h"

namespace kvstore_ext {

struct SchedulerEnd {
  // `number`: by which the scheduler knows the other process.
  SchedulerEnd(int number, double silence, uint32_t job)
      : other(number), scheduler(Connected(), 1, silence, job) {}

  const std::shared_ptr<Node> node = std::make_shared<Node>(0);
  Node other;
  Scheduler scheduler;

 private:
  std::shared_ptr<Node> Connected() {
    other.Connect({node.get()});
    node->Connect({&other});
    return node;
  }
};

}  // namespace kvstore_ext
