// The core's threads, run by the target on its own one. So a run is the same each time, the order
// in which threads take turns is a part of the input, and none waits for a thread to begin or end.
#pragma once

namespace kvstore_ext {

// Everything that the threads of TaskThreads would do by now, and what follows from it.
void RunTasks();

// What each watchdog does when its time has come.
void RunChecks();

}  // namespace kvstore_ext
