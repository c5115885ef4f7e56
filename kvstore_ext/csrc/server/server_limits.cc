// A server's limits: what it waits for, how long, and who is named then (server.h).
#include "server/server.h"
#include "support/clock.h"
#include "support/ranks.h"

namespace kvstore_ext {

void Server::CheckDeadlines() {
  // A little before the workers' own limit, since only a server knows who is missing.
  std::string overdue;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (farewell_since_ > 0) return;
    for (int worker : greeted_) links_[worker]->SendControl(ControlMessage(MessageType::kCredit));
    if (!greeted_.empty()) scheduler_.GiveSign();
    overdue = Overdue(Now() - options_.timeout * 0.9);
  }
  if (!overdue.empty()) Abort("server " + std::to_string(rank_) + ": " + overdue);
}

std::string Server::Overdue(double limit) const {
  if (!greeted_.empty() && joined_.size() < links_.size() && greeted_since_ < limit) {
    std::set<int> present;
    for (const auto& worker : joined_) present.insert(worker.first);
    const std::set<int> missing = Missing(present, options_.workers);
    return WhoHave("worker", missing) + " not opened " + (missing.size() == 1 ? "its" : "their") +
           " store within " + Seconds(options_.timeout);
  }
  for (const auto& key : keys_) {
    const std::string overdue = OverdueKey(key.second, limit);
    if (!overdue.empty()) return overdue;
  }
  for (const auto& open : meetings_.open()) {
    const Meetings::Meeting& meeting = open.second;
    if (meeting.since > limit) continue;
    // Idle workers included, which come to those that go on meanwhile.
    const std::set<int> missing = Missing(meeting.present, options_.workers);
    return Late(missing, meeting.present, " not " + open.first, true);
  }
  if (!left_.empty() && left_since_ <= limit) {
    return Late(Missing(left_, options_.workers), left_, " not closed its last store", false);
  }
  // A moment later than a round's limit, which says more.
  limit -= options_.timeout * 0.1;
  for (const auto& worker : joined_) {
    if (left_.count(worker.first) != 0 || links_[worker.first]->last_heard() > limit) continue;
    return "worker " + std::to_string(worker.first) + " has not been heard of for " +
           Seconds(options_.timeout);
  }
  return "";
}

std::string Server::OverdueKey(const Key& key, double limit) const {
  const std::set<int> senders = key.scalers.senders();
  if (!senders.empty() && key.scalers.since() <= limit) {
    return Late(MissingIn(senders), senders,
                " not sent the scaler of key " + key.name + ", round " +
                    std::to_string(key.scalers.round()),
                true);
  }
  for (const auto& numbered : key.slices) {
    const SliceState& slice = numbered.second;
    const std::set<int>& heard = slice.reduction->heard();
    const bool waits = !heard.empty() || slice.updating;
    if (!waits || slice.since > limit) continue;
    const std::string round = "key " + key.name + ", round " + std::to_string(slice.round);
    if (slice.updating) {
      return "the optimizer has not updated " + round + ", within " + Seconds(options_.timeout);
    }
    const bool in_training = slice.round > 0;
    return Late(MissingIn(heard), heard,
                (in_training ? " not pushed " : " not initialised ") + round, in_training);
  }
  return "";
}

// Who has not done what those present did.
std::string Server::Late(const std::set<int>& missing, const std::set<int>& present,
                         const std::string& what, bool in_training) const {
  return WhoHave("worker", missing) + what + ", which " + Who("worker", present) + " did, within " +
         Seconds(options_.timeout) + (in_training ? Suspicion(missing) : "");
}

// Why workers that are late with a round may be so: those that still give signs of life have not
// crashed.
std::string Server::Suspicion(const std::set<int>& late) const {
  for (int worker : late) {
    if (Now() - links_[worker]->last_heard() > options_.timeout / 2) return "";
  }
  return kUneven;
}

}  // namespace kvstore_ext
