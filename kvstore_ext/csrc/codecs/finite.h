// Whether numbers are neither infinite nor none at all.
#pragma once

#include <cstddef>

#include "support/dtype.h"

namespace kvstore_ext {

// So many of a type, all of them.
bool AllFinite(DType dtype, const char* values, size_t elements);

}  // namespace kvstore_ext
