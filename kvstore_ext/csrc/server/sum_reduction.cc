#include "server/sum_reduction.h"

#include <cstring>

namespace kvstore_ext {

void SumReduction::SetValue(const Buffer& value) {
  if (encoding_ != Encoding::kPlain || value.size != value_.size) {
    throw std::invalid_argument("slice " + std::to_string(context().name.second) + " of key " +
                                context().declaration.name + " has a value of " +
                                std::to_string(value_.size) + " bytes; got " +
                                std::to_string(value.size));
  }
  if (value.size > 0) std::memcpy(value_.data.get(), value.data.get(), value.size);
}

}  // namespace kvstore_ext
