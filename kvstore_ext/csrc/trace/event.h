// What a process records of each slice while its job is traced: trace/events.py says what each kind
// means, and reads it.
#pragma once

#include <cstdint>

namespace kvstore_ext {

enum class EventKind : uint8_t {
  kNothing,  // a place that was taken, and not filled yet
  kReady,
  kPrepared,
  kEncoded,
  kQueued,
  kSent,
  kReceived,
  kSummed,
  kUpdated,
  kAnswered,
  kWritten,
  kDone,
  kAcknowledged,
  kClock,
  kForward,
  kBackward,
  kStep,
};

// As it lies in the file.
struct Event {
  uint64_t key = 0;
  int64_t begin = 0;  // nanoseconds of NowInNanoseconds(); 0: at once, with its recording
  int64_t end = 0;    // 0: with its recording
  uint32_t round = 0;
  int32_t slice = kWholeKey;
  uint32_t bytes = 0;
  int32_t priority = 0;
  int16_t peer = kNoPeer;
  EventKind kind = EventKind::kNothing;
  uint8_t message = 0;  // a MessageType
  uint32_t thread = 0;

  static constexpr int32_t kWholeKey = -1;
  static constexpr int16_t kNoPeer = -1;
};
static_assert(sizeof(Event) == 48, "the file is read as it lies in memory");

}  // namespace kvstore_ext
