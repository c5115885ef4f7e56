// What all limits of waits have in common. Who gives no sign of life is dead; who does may be slow.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "support/clock.h"

namespace kvstore_ext {

// Seconds.
struct Limits {
  static constexpr double kForEver = 1e9;

  double timeout = 300;        // of starting, until all workers have opened their stores
  double silence = 30;         // without a sign of life, after which a process counts as dead
  double patience = kForEver;  // of waits for living processes

  // Between signs of life; others are looked after as often.
  double Interval() const { return std::min(1.0, silence / 10); }

  // After which a wait for a living process is told, and told again.
  double Notice() const { return std::min(60.0, 2 * silence); }

  // Of a worker's waits, since a server that waits as long knows better who is missing, and on a
  // busy host takes its time to say so.
  static double Later(double limit) { return limit + std::max(1.0, 0.1 * limit); }

  // Peers that have been silent for too long. While `settled` does not hold, others may follow at
  // once: who was cut off has lost all, whose last signs came at other times.
  struct Loss {
    std::set<int> dead;
    bool settled = true;
    double longest = 0;  // seconds of silence
  };

  // Of peers by the seconds for which they have been silent.
  Loss LossAmong(const std::map<int, double>& silent) const {
    Loss loss;
    bool more_follow = false;
    for (const auto& [peer, seconds] : silent) {
      if (seconds > silence) loss.dead.insert(peer);
      if (seconds > silence - Moment() && seconds <= silence) more_follow = true;
      loss.longest = std::max(loss.longest, seconds);
    }
    loss.settled = !more_follow || loss.longest > silence + Moment();
    return loss;
  }

  // For which a loss may be not settled: between two peers' signs, and until somebody looks.
  double Moment() const { return 1.5 * Interval(); }

  // The last part of a notice.
  std::string Prospect() const {
    const bool limited = patience < kForEver;
    return "; there are signs of life, and the option patience sets " +
           (limited ? "a limit of " + Seconds(patience) : "no limit");
  }
};

// Tells others' silence from one's own: who was stopped itself, in a debugger or as its host was,
// has heard nobody meanwhile. Of one thread.
class Awake {
 public:
  // `lapse`: seconds between two calls of Since from which on the process was not awake.
  explicit Awake(double lapse) : lapse_(lapse), since_(Now()), last_(since_) {}

  // Since when the process is awake, by Now(). To be called at intervals.
  double Since() {
    const double now = Now();
    if (now - last_ > lapse_) since_ = now;
    last_ = now;
    return since_;
  }

 private:
  const double lapse_;
  double since_, last_;
};

}  // namespace kvstore_ext
