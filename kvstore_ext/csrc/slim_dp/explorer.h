// What a worker communicates of a slice beside the core, at random.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/subset.h"

namespace kvstore_ext {

// The core and `count` other elements, drawn uniformly without replacement from outside it; the
// same for the same stream, on every machine. Takes time by the number drawn, not by the elements,
// as long as not nearly all are in the core. Throws std::invalid_argument where there are fewer.
Subset Explore(const Subset& core, size_t count, uint64_t stream);

// How many of `drawn` elements, taken without replacement from `all`, fall among `part` of them:
// hypergeometric, drawn by inversion from the stream's number `position`.
// Preconditions: part <= all, drawn <= all.
size_t DrawShare(size_t all, size_t part, size_t drawn, uint64_t stream, uint64_t position);

}  // namespace kvstore_ext
