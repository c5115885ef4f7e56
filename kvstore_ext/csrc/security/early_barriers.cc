#include "security/early_barriers.h"

#include <cstdlib>
#include <string_view>

#include "support/resends.h"

namespace kvstore_ext {

EarlyBarriers EarlyBarriers::FromEnvironment() {
  const char* role = std::getenv("DMLC_ROLE");
  const bool schedules = role != nullptr && std::string_view(role) == "scheduler";
  return EarlyBarriers(schedules && PsLiteResends());
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
