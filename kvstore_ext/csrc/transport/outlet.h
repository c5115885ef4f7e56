// Where messages leave to one peer, until it is closed.
#pragma once

#include <atomic>

namespace kvstore_ext {

// Knows whether threads are still in it, so that who closes it may wait for them. Thread-safe.
class Outlet {
 public:
  // A thread's way through, as long as it lives.
  class Way {
   public:
    explicit Way(Outlet* outlet) : outlet_(outlet) { ++outlet_->ways_; }
    ~Way() { --outlet_->ways_; }
    Way(const Way&) = delete;

    // Whether anything may be sent now.
    bool open() const { return !outlet_->closed_; }

   private:
    Outlet* const outlet_;
  };

  // From now on every way ends. What was handed to the transport before may be about to leave.
  void Close() { closed_ = true; }

  // Whether a thread is on a way that may have been open.
  bool in_use() const { return ways_ > 0; }

 private:
  std::atomic<bool> closed_{false};
  std::atomic<int> ways_{0};
};

}  // namespace kvstore_ext
