// Keeps a scheduler from counting a process twice at the barrier with which a job begins, where
// ps-lite sends again what was lost (PS_RESEND).
#pragma once

#include <cstdint>

#include "security/expected_messages.h"

namespace kvstore_ext {

// ps-lite acknowledges messages, and knows those that it has had already, up to 100 ms later than
// others can come to the first barrier. What came before is sent again and counted again: with all
// processes so early, the scheduler took the job for over when it had just begun. Dropped as if it
// were lost, it is sent again and counted once. For ps-lite's thread that receives.
class EarlyBarriers {
 public:
  explicit EarlyBarriers(bool schedules_and_resends) : waits_(schedules_and_resends) {}

  // As the environment has it (DMLC_ROLE, PS_RESEND).
  static EarlyBarriers FromEnvironment();

  // Whether ps-lite must not read a message yet; `own` is the number that this process has by now.
  // Once the scheduler has come to the barrier itself, it knows what it has had.
  bool IsEarly(const PsLiteFrames& frames, int32_t own);

 private:
  bool waits_;
};

}  // namespace kvstore_ext
