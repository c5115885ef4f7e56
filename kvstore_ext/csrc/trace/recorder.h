// Where a process records what happens to its slices while its job is traced.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/clock.h"
#include "trace/event.h"

namespace kvstore_ext {

// Writes events into a file that is part of the process's memory: whatever ends the process, they
// are in the file. The file is as large as it may become from the beginning, so that a full disk is
// found then, and is cut to what it holds when it is closed. Events for which there is no room left
// are counted.
//
// Thread-safe, and without locks where events of slices are recorded. Off, an event costs one load.
class Recorder {
 public:
  Recorder();
  ~Recorder();

  // Records from step `first` to before step `last`; a step begins with the first gradient of a
  // round that is further than all before. What step `first` waits for is recorded too: what came
  // since the step before has begun. With first = 0 it begins at once. Throws std::runtime_error
  // where the file cannot be made, or there is no room for it.
  void Open(const std::string& path, uint64_t capacity, uint64_t first, uint64_t last);

  // Ends the file.
  void Close();

  // To be called in a forked child: the file is its parent's, in memory that both have.
  void Forget() {
    on_ = false;
    file_ = nullptr;
  }

  // Whether it has a file, into which it writes at some steps or at all.
  bool is_open() const { return file_ != nullptr; }

  // Whether layers are to be told of: one before the first step that is recorded says where the
  // next one begins, but of those after the last nothing is needed.
  bool wants_layers() const { return is_open() && step_.load(std::memory_order_relaxed) < last_; }

  bool on() const { return on_.load(std::memory_order_relaxed); }

  // Now, to be an event's beginning later; 0 while nothing is recorded.
  int64_t Begin() const { return on() ? NowInNanoseconds() : 0; }

  void Record(const Event& event) {
    if (on()) Write(event);
  }

  // A layer has ended. Its event begins where that of the layer before it has ended, at whichever
  // step; the first since the last Open has no length.
  void RecordLayer(Event event);

  // A round has begun; the first to say so begins a step. Returns whether it did.
  bool Reach(uint64_t round) {
    return round > step_.load(std::memory_order_relaxed) && BeginStep(round);
  }

  // A layer's number, which is `key` in events of it, and the names of all that have one.
  uint64_t NumberOf(const std::string& layer);
  std::vector<std::string> layers() const;

  // Events that are recorded, and those for which there was no room, since the last Open.
  uint64_t recorded() const;
  uint64_t dropped() const;

 private:
  class File;

  void Write(Event event);
  bool BeginStep(uint64_t round);

  std::atomic<bool> on_{false};
  std::atomic<uint64_t> step_{0};  // the furthest round so far
  std::atomic<File*> file_{nullptr};
  std::atomic<uint64_t> last_{0};  // the first step that is not recorded any more

  mutable std::mutex mutex_;  // of all below
  // The last is in use. Who has just begun to write into another may still do so.
  std::vector<std::unique_ptr<File>> files_;
  uint64_t first_ = 0;
  int64_t step_since_ = 0;  // when the step began, in nanoseconds
  int64_t layer_end_ = 0;   // of the last layer, in nanoseconds; 0 before the first
  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> layers_;
};

}  // namespace kvstore_ext
