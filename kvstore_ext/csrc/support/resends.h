// Whether ps-lite sends again what is lost.
#pragma once

#include <cstdlib>

namespace kvstore_ext {

// As ps-lite reads it (PS_RESEND).
inline bool PsLiteResends() {
  const char* resends = std::getenv("PS_RESEND");
  return resends != nullptr && std::atoi(resends) != 0;
}

}  // namespace kvstore_ext
