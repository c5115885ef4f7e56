// Updates that the core makes of a slice by itself, where MXNet's engine would cost more than the
// computation.
#pragma once

#include "codecs/kernels/kernels.h"
#include "server/server.h"

namespace kvstore_ext {

// The states are an optimizer's own, in float32, with the slice's number of elements. A slice of
// float16 has its weights in float32 as well, the master; another has null there.
struct SgdUpdate {
  SgdStep step;
  float* velocity = nullptr;  // null without momentum
  float* master = nullptr;
};

struct AdamUpdate {
  AdamStep step;
  float* mean = nullptr;
  float* variance = nullptr;
  float* master = nullptr;
};

// Overwrites the slice's value and the states. Nobody else may use them meanwhile. Throws
// std::invalid_argument for a slice of another type than float32, or float16 with a master.
void Compute(const SgdUpdate& how, const Update& update);
void Compute(const AdamUpdate& how, const Update& update);

}  // namespace kvstore_ext
