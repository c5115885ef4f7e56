// Runs a worker's operations as operations of MXNet's engine. That is the whole of the overlap: the
// engine starts them when the gradient is computed, and starts the next forward pass of the layer
// when they end.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/libmxnet.h"
#include "worker/worker.h"

namespace kvstore_ext {

// Asks the engine to start an operation on a key once its arrays are ready; returns at once.
//
// input and output, which become the operation's, are arrays on the CPU that hold the key's
// elements; either may be null, or both the same array. turn is an array of the key's own, written
// by every operation on it, so that they follow each other. The caller may free its arrays at once.
// A failure is raised where somebody waits for the output or for turn. Throws std::runtime_error
// with MXNet's message if the engine refuses.
void PushToEngine(std::shared_ptr<Worker> worker, Operation operation, NDArrayHandle input,
                  NDArrayHandle output, NDArrayHandle turn);

// Asks the engine to run an action once all pending operations that write to these arrays have
// ended, each of which stands here once. It is called with false where one of them failed.
void RunAfter(std::vector<NDArrayHandle> written, std::function<void(bool computed)> action);

// To be called before anything fails, with an array of the caller's that nothing else uses.
//
// MXNet's engine keeps the failures that nobody has waited for in a vector, which its threads look
// through and add to without a lock. When a job fails, many operations do at once, and the vector
// that grows under somebody who reads it has ended processes with a corrupted heap. It never
// shrinks; so it is grown here, to have room for kFailures of them at the least.
void MakeRoomForFailures(NDArrayHandle array);
constexpr int kFailures = 2048;

}  // namespace kvstore_ext
