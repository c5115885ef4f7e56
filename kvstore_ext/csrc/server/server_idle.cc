// A server's rounds without workers that have run out of work: store.join (server.h).
//
// From a worker's kIdle on every round counts it as come, with nothing, also one that others have
// begun; no result is sent to it. Once all workers are idle nothing is under way: then each hears
// how far all keys have come, and nobody is idle any more.
#include <stdexcept>

#include "keys/idle.h"
#include "server/server.h"
#include "support/ranks.h"

namespace kvstore_ext {

void Server::OnIdle(const Message& message) {
  const int worker = message.peer;
  const IdleNotice notice = IdleNotice::Unpack(message.text);
  if (!left_.empty()) {
    throw std::runtime_error(WhoHave("worker", left_) + " left, but worker " +
                             std::to_string(worker) +
                             " joined: all workers call store.join as often");
  }
  idle_.Add(worker, notice.mean);
  sparse_.Begin(worker, notice.sparse);
  TellBehind();
  CheckMeetings();
  for (auto& entry : keys_) {
    Key& key = entry.second;
    AnswerScalers(entry.first, &key);
    for (auto& slice : key.slices) {
      slice.second.rested[worker] = slice.second.round;
      CheckNotIdle(key, slice.second);
      CompleteIfAllHaveCome({entry.first, slice.first}, &key, &slice.second);
    }
  }
  if (idle_.all()) Resume();
}

// A worker begins a round of a sparse key.
void Server::OnSparse(const Message& meet) {
  sparse_.Begin(meet.peer, meet.header.key, meet.header.round, meet.text);
  for (int worker : left_) CheckNotLeftBehind(worker);
  TellBehind();
}

// MXNet's own store waits for ever for a push of a worker that has left.
void Server::CheckNotLeftBehind(int worker) const {
  const std::string missed = sparse_.MissedBy(worker);
  if (missed.empty()) return;
  throw std::runtime_error("worker " + std::to_string(worker) + " has left, but another one has " +
                           missed + kUneven);
}

// An idle worker pushes nothing for a sparse key as often as it is told to. How often is a number
// from the network: nothing here takes longer for a large one.
void Server::TellBehind() {
  for (int worker : idle_.ranks()) {
    for (const auto& behind : sparse_.TakeBehind(worker)) {
      idle_.Miss(worker);
      links_[worker]->SendControl(SparseMessage(behind.first, behind.second));
    }
  }
}

// First values and broadcasts have to come from all, or to go to all.
void Server::CheckNotIdle(const Key& key, const SliceState& slice) const {
  const std::set<int>& heard = slice.reduction->heard();
  if (idle_.none() || heard.empty()) return;
  if (slice.round > 0 && slice.reduction->spares_idle()) return;
  CheckNotIdle(heard,
               (slice.reduction->spares_idle() ? "initialised key " : "broadcast key ") + key.name);
}

// What workers do that cannot go on without the others.
void Server::CheckNotIdle(const std::set<int>& present, const std::string& what) const {
  if (idle_.none()) return;
  throw std::runtime_error(
      WhoHave("worker", idle_.ranks()) + " joined, but " + Who("worker", present) + " " + what +
      ", in which all take part: only pushes go on without those that have called store.join");
}

void Server::Resume() {
  Resumption resumption;
  resumption.missed = idle_.End();
  if (!resumption.missed.empty()) {
    for (const auto& entry : keys_) {
      const auto& slices = entry.second.slices;
      if (!slices.empty()) resumption.rounds[entry.first] = slices.begin()->second.round;
    }
  }
  ToAll(MessageType::kResume, resumption.Pack());
}

// Those for whom a round waits.
std::set<int> Server::MissingIn(const std::set<int>& heard) const {
  std::set<int> missing = Missing(heard, options_.workers);
  for (int worker : idle_.ranks()) missing.erase(worker);
  return missing;
}

}  // namespace kvstore_ext
