// Tells messages of a peer's that are lost from those that are late.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvstore_ext {

// A connection that something on its way resets comes back by itself, but not what was under way
// on it, and whoever waits for that would wait for ever.
//
// Every sign of life says how many messages had left before it. On the wire they come before it,
// but in the inbox it overtakes them, and a thread that was busy reads several signs at once, ahead
// of what is next to them. So messages are lost where none has come for long, and a watchdog has
// found several times that there was another sign which says that some are missing.
//
// What comes twice, or from a stranger, hides as many that are lost. Came, Told and GiveUp are the
// receiving thread's, Lost is the watchdog's.
class LostMessages {
 public:
  // One of those that the peer counts has come.
  void Came() {
    ++came_;
    missing_ = 0;
  }

  // So many had left when the peer gave this sign of life; the time is Now()'s.
  void Told(uint32_t left, double now) {
    const auto missing = static_cast<int32_t>(left - came_);  // numbers begin again at 0
    if (missing > 0 && missing_ == 0) since_ = now;
    ++told_;
    missing_ = missing > 0 && counts_ ? missing : 0;
  }

  // How many have come is not known any more: from now on none counts as lost.
  void GiveUp() { counts_ = false; }

  // How many are lost, if any have been missing for so many seconds. To be asked again and again.
  int Lost(double now, double seconds) {
    const int missing = missing_;
    const double since = since_;
    const uint64_t told = told_;
    if (missing == 0 || since != found_) {
      found_ = since;
      times_ = 0;
    } else if (told != seen_) {
      ++times_;
    }
    seen_ = told;
    return times_ >= kTimes && now - since > seconds ? missing : 0;
  }

 private:
  static constexpr int kTimes = 5;

  uint32_t came_ = 0;
  bool counts_ = true;
  std::atomic<int> missing_{0};    // by the last sign, nothing having come behind it
  std::atomic<double> since_{0};   // when the first sign was read that says so
  std::atomic<uint64_t> told_{0};  // signs

  // The watchdog's: what it has seen, and how often it has found more.
  double found_ = 0;
  uint64_t seen_ = 0;
  int times_ = 0;
};

}  // namespace kvstore_ext
