// What a worker and a server do alike with everything that arrives.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/gate.h"
#include "transport/link.h"
#include "transport/scheduler_link.h"
#include "transport/unreadable.h"

namespace kvstore_ext {

// Takes in what the gate admits: `act` is called with each message that is now whole. The gate
// counts what cannot be read, for an encoding can be looked at only once all its parts have come.
// Throws what the gate and `act` throw, but not Unfit. To be called by one thread.
void TakeIn(Message arrived, Gate* gate, Unreadable* unreadable, SchedulerLink* scheduler,
            const std::vector<std::unique_ptr<Link>>& links,
            const std::function<void(const Message&)>& act);

}  // namespace kvstore_ext
