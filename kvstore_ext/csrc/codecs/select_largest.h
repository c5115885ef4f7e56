// The largest values of many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvstore_ext {

// The indices, ascending, of the `count` values of the largest magnitude; of equal ones the first.
// Precondition: count <= elements.
std::vector<uint64_t> SelectLargest(const float* values, size_t elements, size_t count);

}  // namespace kvstore_ext
