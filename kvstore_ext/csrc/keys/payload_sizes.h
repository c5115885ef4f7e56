// How many bytes the payload of a slice has, or may have, by what was agreed of its key.
#pragma once

#include "support/dtype.h"

namespace kvstore_ext {

// Of so many numbers as they are.
inline size_t PlainBytes(DType dtype, uint64_t elements) { return elements * SizeOf(dtype); }

// No encoding of so many numbers has more. Slim-DP's values have 8.1 bytes an element in buckets of
// one, and then their indices; and what stands before all of them.
inline size_t MostEncodedBytes(uint64_t elements) { return 16 * elements + 64; }

}  // namespace kvstore_ext
