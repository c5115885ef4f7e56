// The core's threads, run by the target on its own one. So a run is the same each time, the order
// in which threads take turns is a part of the input, and none waits for a thread to begin or end.
#pragma once

#include <cstddef>

#include "support/limits.h"

namespace kvstore_ext {

// Everything that the threads of TaskThreads would do by now, and what follows from it.
void RunTasks();

// What each watchdog does when its time has come.
void RunChecks();

// So that what comes late does so at once, for who is there and for who is not: of some numbers
// below 256.
inline void Shorten(size_t number, Limits* limits) {
  constexpr double kNoTime = 1e-9;  // seconds
  if (number >= 240) limits->patience = kNoTime;
  if (number >= 248) limits->silence = kNoTime;
}

}  // namespace kvstore_ext
