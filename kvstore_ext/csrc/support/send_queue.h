// The queue that gives P3 its order: higher priorities first, first come first among equals.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace kvstore_ext {

// A closable priority queue whose items are let out only while the bytes in flight, those let out
// and not yet released, fit a window. What has been let out can no longer be overtaken; therefore
// the window, not the queue, decides how well priorities are kept. An item larger than the window
// goes alone. Thread-safe.
template <typename Item>
class SendQueue {
 public:
  static constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

  explicit SendQueue(size_t window_bytes = kUnlimited) : window_(window_bytes) {}

  // Queues an item; a closed queue drops it.
  void Push(int priority, size_t bytes, Item item) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) return;
      entries_.emplace(std::make_pair(-int64_t{priority}, pushed_++),
                       Entry{bytes, std::move(item)});
    }
    changed_.notify_one();
  }

  // Takes the first item if there is one and it fits the window.
  bool TryPop(Item* item) {
    std::lock_guard<std::mutex> lock(mutex_);
    return TakeFirst(item);
  }

  // Waits for an item that fits; false when the queue was closed.
  bool Pop(Item* item) {
    std::unique_lock<std::mutex> lock(mutex_);
    bool taken = false;
    changed_.wait(lock, [&] { return closed_ || (taken = TakeFirst(item)); });
    return taken;
  }

  // Gives bytes of the window back.
  void Release(size_t bytes) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      in_flight_ -= bytes < in_flight_ ? bytes : in_flight_;
    }
    changed_.notify_all();
  }

  // With no more than idle_bytes in flight, the next item leaves whatever its size.
  void SetWindow(size_t window_bytes, size_t idle_bytes = 0) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      window_ = window_bytes;
      idle_ = idle_bytes;
    }
    changed_.notify_all();
  }

  // Drops what is queued, lets nothing in any more, and wakes everybody who waits.
  void Close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      entries_.clear();
    }
    changed_.notify_all();
  }

  // Nothing is queued, and no more than idle_bytes are in flight.
  bool Idle() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_.empty() && in_flight_ <= idle_;
  }

  size_t in_flight() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return in_flight_;
  }

  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    size_t bytes;
    Item item;
  };

  bool TakeFirst(Item* item) {
    if (entries_.empty()) return false;
    auto first = entries_.begin();
    if (in_flight_ > idle_ && first->second.bytes > Room()) return false;
    in_flight_ += first->second.bytes;
    *item = std::move(first->second.item);
    entries_.erase(first);
    return true;
  }

  size_t Room() const { return window_ > in_flight_ ? window_ - in_flight_ : 0; }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, uint64_t>, Entry> entries_;  // (-priority, sequence)
  uint64_t pushed_ = 0;
  size_t window_;
  size_t idle_ = 0;
  size_t in_flight_ = 0;
  bool closed_ = false;
};

}  // namespace kvstore_ext
