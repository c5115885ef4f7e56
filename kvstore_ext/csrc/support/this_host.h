// The name of the host that this process runs on.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace kvstore_ext {

inline std::string ThisHost() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace kvstore_ext
