// A server's limits: what it waits for, how long, and who is named then (server.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "server/server.h"
#include "support/clock.h"
#include "support/ranks.h"

namespace kvstore_ext {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Whether any of `workers`, or of all where those are none, is among these.
bool AnyAmong(const std::set<int>& workers, const std::set<int>& these) {
  return workers.empty() || std::any_of(workers.begin(), workers.end(),
                                        [&](int rank) { return these.count(rank) != 0; });
}

// Behind what workers have not done.
std::string WhichDid(const std::set<int>& present) {
  return present.empty() ? "" : ", which " + Who("worker", present) + " did";
}

}  // namespace

// The wait that began first, of those for any of some workers by any of others, or of all where
// those are none.
class Server::Longest {
 public:
  Longest(const std::set<int>& missing, const std::set<int>& present)
      : missing_(missing), present_(present) {
    wait_.since = Now();
  }

  // Whether one that began then is to be considered.
  bool IsAfter(double since) const { return since < wait_.since; }

  void Consider(Wait wait) {
    if (!AnyAmong(missing_, wait.missing) || !AnyAmong(present_, wait.present)) return;
    wait_ = std::move(wait);
  }

  // Without `what` where nothing waits.
  Wait Take() { return std::move(wait_); }

 private:
  const std::set<int>& missing_;
  const std::set<int>& present_;
  Wait wait_;
};

void Server::CheckDeadlines() {
  std::string failure;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (farewell_since_ > 0) return;
    for (const auto& worker : hosts_) Tell(worker.first, SignOfLife(gate_.refused()));
    if (!hosts_.empty()) scheduler_.GiveSign();
    if (!LosesWorkers(&failure)) {
      failure = Unread();
      if (failure.empty()) failure = UnreadBatch();
      if (failure.empty()) failure = LostOnTheWay();
      if (failure.empty()) failure = Overdue();
    }
  }
  if (!failure.empty()) Abort(Named(failure));
}

// A round waits for a worker that has sent a batch which cannot be read to its end, while the round
// was open: the push may have been in there.
std::string Server::UnreadBatch() {
  return unreadable_.OverdueBatch(
      options_.limits.silence, [this](int worker, double came) -> std::optional<double> {
        std::optional<double> since;
        if (idle_.Has(worker)) return since;
        for (const auto& key : keys_) {
          for (const auto& numbered : key.second.slices) {
            const SliceState& slice = numbered.second;
            const std::set<int>& heard = slice.reduction->heard();
            if (slice.updating || slice.opened > came || heard.count(worker) != 0) continue;
            // Who has not begun it may do so, and would then wait.
            const double waits = heard.empty() ? kNever : slice.since;
            since = std::min(since.value_or(waits), waits);
          }
        }
        return since;
      });
}

std::string Server::LostOnTheWay() const {
  std::map<int, std::string> present = hosts_;
  for (int worker : left_) present.erase(worker);
  return LostMessagesOf("worker", present, links_, options_.limits.silence);
}

// Whether workers give no sign of life any more. Says which once that is settled, and what others
// wait for them to do. Nobody misses those that have left.
bool Server::LosesWorkers(std::string* which) {
  const Limits& limits = options_.limits;
  const double awake = awake_.Since();
  std::map<int, double> silent;
  for (const auto& worker : hosts_) {
    if (left_.count(worker.first) != 0) continue;
    silent[worker.first] = links_[worker.first]->signs().Silence(Now(), awake);
  }
  const Limits::Loss loss = limits.LossAmong(silent);
  if (loss.dead.empty()) return false;
  if (!loss.settled) return true;
  const Wait wait = LongestWait(loss.dead);
  // A moment later where nothing waits here: another server may know what does.
  const bool may_know_less = wait.what.empty();
  if (may_know_less && loss.longest < Limits::Later(limits.silence + limits.Moment())) return true;
  *which = WhoHave("worker", loss.dead) + " not been heard of for " + Seconds(limits.silence) +
           (wait.what.empty() ? "" : ", nor " + wait.what + WhichDid(wait.present)) +
           Where("worker", loss.dead, hosts_);
  return true;
}

// Workers for which others have waited too long, although they are alive.
std::string Server::Overdue() {
  const Wait wait = LongestWait({});
  if (wait.what.empty()) return "";
  const Limits& limits = options_.limits;
  const double waited = Now() - wait.since;
  const double limit = wait.starting ? limits.timeout : limits.patience;
  const std::string who =
      wait.missing.empty() ? "the optimizer has" : WhoHave("worker", wait.missing);
  const std::string late = who + " not " + wait.what + WhichDid(wait.present);
  const std::string where = Where("worker", wait.missing, hosts_) + InTurn(wait);
  const std::string suspicion = wait.uneven ? Suspicion(wait.missing) : "";
  if (waited > limit) return late + ", within " + Seconds(limit) + where + suspicion;
  // Who has come to the cluster is the launcher's to tell.
  if (!wait.starting && std::min(waited, Now() - noticed_) > limits.Notice()) {
    TellWaiting(wait, late + ", for " + Seconds(std::floor(waited)) + where + limits.Prospect() +
                          suspicion);
  }
  return "";
}

// What others wait for in turn, for those who wait: a circle, which may have begun at either end.
std::string Server::InTurn(const Wait& wait) const {
  if (wait.missing.empty()) return "";
  const Wait other = LongestWait(wait.present, wait.missing);
  if (other.what.empty()) return "";
  return "; and " + WhoHave("worker", other.missing) + " not " + other.what +
         WhichDid(other.present);
}

// Why everybody waits, to those who do, the first of whom says so.
void Server::TellWaiting(const Wait& wait, const std::string& why) {
  noticed_ = Now();
  const bool all = wait.present.empty();
  bool is_said = true;
  for (const auto& worker : hosts_) {
    if (!all && wait.present.count(worker.first) == 0) continue;
    Tell(worker.first, NoticeMessage(why, is_said));
    is_said = false;
  }
}

// Nothing to a worker that has left and is gone.
void Server::Tell(int worker, const Message& message) {
  const double silence = links_[worker]->signs().Silence(Now());
  if (left_.count(worker) != 0 && silence > options_.limits.silence) return;
  links_[worker]->SendSign(message);
}

Server::Wait Server::LongestWait(const std::set<int>& missing, const std::set<int>& present) const {
  Longest longest(missing, present);
  if (!hosts_.empty() && joined_.size() < links_.size() && longest.IsAfter(greeted_since_)) {
    const std::set<int> joined = RanksOf(joined_);
    const std::set<int> others = Missing(joined, options_.workers);
    Wait wait{greeted_since_, others, joined,
              others.size() == 1 ? "opened its store" : "opened their store"};
    wait.starting = true;
    longest.Consider(std::move(wait));
  }
  for (const auto& key : keys_) LookAt(key.second, &longest);
  for (const auto& open : meetings_.open()) {
    const Meetings::Meeting& meeting = open.second;
    if (!longest.IsAfter(meeting.since)) continue;
    // Idle workers included, which come to those that go on meanwhile.
    Wait wait{meeting.since, Missing(meeting.present, options_.workers), meeting.present,
              open.first.second};
    wait.uneven = true;
    longest.Consider(std::move(wait));
  }
  if (!left_.empty() && longest.IsAfter(left_since_)) {
    longest.Consider(
        {left_since_, Missing(left_, options_.workers), left_, "closed its last store"});
  }
  return longest.Take();
}

void Server::LookAt(const Key& key, Longest* longest) const {
  const std::set<int> senders = key.scalers.senders();
  if (!senders.empty() && longest->IsAfter(key.scalers.since())) {
    const std::string round = std::to_string(key.scalers.round());
    Wait wait{key.scalers.since(), MissingIn(senders), senders,
              "sent the scaler of key " + key.name + ", round " + round};
    wait.uneven = true;
    longest->Consider(std::move(wait));
  }
  for (const auto& numbered : key.slices) {
    const SliceState& slice = numbered.second;
    const std::set<int>& heard = slice.reduction->heard();
    if ((heard.empty() && !slice.updating) || !longest->IsAfter(slice.since)) continue;
    const std::string round = "key " + key.name + ", round " + std::to_string(slice.round);
    if (slice.updating) {
      const std::string whose =
          ", whose sum it has had for " + Seconds(std::floor(Now() - slice.summed));
      longest->Consider({slice.since, {}, {}, "updated " + round + whose});
      continue;
    }
    const bool in_training = slice.round > 0;
    Wait wait{slice.since, MissingIn(heard), heard,
              (in_training ? "pushed " : "initialised ") + round};
    wait.uneven = in_training;
    longest->Consider(std::move(wait));
  }
}

// Why workers that are late with a round may be so: those that still give signs of life have not
// crashed.
std::string Server::Suspicion(const std::set<int>& late) const {
  for (int worker : late) {
    if (links_[worker]->signs().Silence(Now()) > options_.limits.silence / 2) return "";
  }
  return kUneven;
}

}  // namespace kvstore_ext
