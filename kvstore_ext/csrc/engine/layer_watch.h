// When each operator of a network ran, for a trace, where MXNet tells of operators.
#pragma once

#include <memory>

#include "worker/worker.h"

namespace kvstore_ext {

// Have a worker's recorder told when each operator of a network has computed its output, in the
// forward pass and in the backward one, under the name that it has in the network's graph. What is
// watched stays so, and tells the worker that was given last. Both throw std::runtime_error where
// MXNet refuses.

// `network` is the handle of MXNet's CachedOp, which a hybridized Gluon network is. Of one with
// fixed shapes MXNet tells only a few operators.
void WatchNetwork(std::shared_ptr<Worker> worker, void* network);

// `executor` is the handle of MXNet's Executor, of which a Module has one for each device. It has
// room for one who watches: nobody else may.
void WatchExecutor(std::shared_ptr<Worker> worker, void* executor);

}  // namespace kvstore_ext
