// What tells a trace that a layer of the network has run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/event.h"
#include "transport/libmxnet.h"
#include "worker/worker.h"

namespace kvstore_ext {

// Has a worker's recorder told, as an event of this layer, when MXNet has done all that it was
// given so far and that arrays depend on: what writes those in `reads`, and what reads or writes
// those in `writes`. The event lasts from the end of the one before it, of whichever layer and
// pass, to that moment: what the layer has waited for is in it. Does nothing while the worker is
// not traced, and with arrays that have no memory. No array may stand twice in `writes`. Throws
// std::runtime_error where MXNet refuses.
void MarkLayer(const std::shared_ptr<Worker>& worker, const std::string& layer, EventKind pass,
               std::vector<NDArrayHandle> reads, std::vector<NDArrayHandle> writes);

}  // namespace kvstore_ext
