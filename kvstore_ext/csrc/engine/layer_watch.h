// When each layer of a network ran, for a trace.
#pragma once

#include <memory>

#include "worker/worker.h"

namespace kvstore_ext {

// Has a worker's recorder told when each operator of a network has computed its output, in the
// forward pass and in the backward one. `network` is the handle of MXNet's CachedOp, which a
// hybridized Gluon network is. An event lasts from the end of the layer before, whichever pass that
// was of, to this one's: what it waited for is in it. Throws std::runtime_error where MXNet
// refuses.
void WatchLayers(std::shared_ptr<Worker> worker, void* network);

}  // namespace kvstore_ext
