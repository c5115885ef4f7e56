// A worker's limits: what it waits for, how long, and who is named then (worker.h).
#include "support/clock.h"
#include "support/ranks.h"
#include "worker/worker.h"
#include "worker/worker_key.h"

namespace kvstore_ext {

void Worker::CheckDeadlines() {
  if (!failure_.reason().empty()) return;
  if (joined_) {
    GiveSigns();
    const std::string silent = Silent();
    if (!silent.empty()) return Abort(silent);
  }
  for (Key* key : Keys()) {
    const std::string overdue = Overdue(key);
    if (!overdue.empty()) return Abort(overdue);
  }
  const std::string stock = stock_.Overdue(options_.timeout);
  if (!stock.empty()) {
    Abort(Named("MXNet's own servers have not " + stock + " within " + Seconds(options_.timeout)));
  }
}

void Worker::GiveSigns() {
  for (auto& link : links_) link->SendControl(ControlMessage(MessageType::kCredit));
  scheduler_.GiveSign();
}

// Says which servers have given no sign of life for too long, and a key that waits for them. They
// are named before the living ones say, at nine tenths of the time, that they wait for the workers
// which wait for them.
std::string Worker::Silent() {
  std::set<int> silent;
  for (int server = 0; server < options_.servers; ++server) {
    if (Now() - links_[server]->last_heard() > options_.timeout * 0.8) silent.insert(server);
  }
  if (silent.empty()) return "";
  const std::string within = ", within " + Seconds(options_.timeout);
  for (Key* key : Keys()) {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (!key->busy) continue;
    for (int server : key->AwaitedServers()) {
      if (silent.count(server) == 0) continue;
      return Named("no answer from " + Who("server", silent) + " for key " + key->declared.name +
                   ", round " + std::to_string(key->rounds - 1) + within);
    }
  }
  return Named("no sign of life from " + Who("server", silent) + within);
}

// Says for whom a key's operation has waited too long; empty if it has not.
std::string Worker::Overdue(Key* key) {
  std::lock_guard<std::mutex> lock(key->mutex);
  if (!key->busy || Now() - key->since < options_.timeout) return "";
  const std::set<int> servers = key->AwaitedServers();
  return Named("no answer from " + Who("server", servers) + " for key " + key->declared.name +
               ", round " + std::to_string(key->rounds - 1) + ", within " +
               Seconds(options_.timeout));
}

}  // namespace kvstore_ext
