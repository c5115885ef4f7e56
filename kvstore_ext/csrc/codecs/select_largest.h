// The largest values of many.
#pragma once

#include <cstddef>

#include "support/subset.h"

namespace kvstore_ext {

// The `count` values of the largest magnitude; of equal ones the first. Precondition: count <=
// elements.
Subset SelectLargest(const float* values, size_t elements, size_t count);

}  // namespace kvstore_ext
