#include "security/early_barriers.h"

#include <cstdlib>
#include <string_view>

namespace kvstore_ext {

EarlyBarriers EarlyBarriers::FromEnvironment() {
  const char* role = std::getenv("DMLC_ROLE");
  const char* resends = std::getenv("PS_RESEND");
  return EarlyBarriers(role != nullptr && std::string_view(role) == "scheduler" &&
                       resends != nullptr && std::atoi(resends) != 0);
}

bool EarlyBarriers::IsEarly(const PsLiteFrames& frames, int32_t own) {
  if (!waits_) return false;
  PsLiteMeta meta;
  if (!meta.Read(frames.meta) || meta.command != PsLiteCommand::kBarrier || !meta.request) {
    return false;
  }
  waits_ = PsLiteId(frames.name) != own;
  return waits_;
}

}  // namespace kvstore_ext
