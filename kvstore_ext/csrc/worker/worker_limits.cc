// A worker's limits: what it waits for, how long, and who is named then (worker.h).
#include <cmath>
#include <optional>

#include "support/clock.h"
#include "support/printable.h"
#include "support/ranks.h"
#include "support/say.h"
#include "worker/worker.h"
#include "worker/worker_key.h"

namespace kvstore_ext {

void Worker::CheckDeadlines() {
  if (!failure_.reason().empty()) return;
  GiveSigns();
  std::string lost;
  if (LosesServers(&lost)) {
    if (!lost.empty()) Abort(lost);
    return;
  }
  std::string unread = Unread();
  if (unread.empty()) unread = UnreadBatch();
  if (unread.empty()) unread = LostOnTheWay();
  if (!unread.empty()) return Abort(Named(unread));
  const double patience = options_.limits.patience;
  for (Key* key : Keys()) {
    const std::string overdue = Overdue(key);
    if (!overdue.empty()) return Abort(overdue);
  }
  const std::string stock = stock_.Overdue(Limits::Later(patience));
  if (!stock.empty()) {
    return Abort(Named("MXNet's own servers have not " + stock + ", within " + Seconds(patience)));
  }
  // A moment later than servers do, which know for which worker they wait.
  const double notice = Limits::Later(options_.limits.Notice());
  if (Now() - noticed_ < notice) return;
  const std::string unanswered = Unanswered(notice);
  if (unanswered.empty()) return;
  noticed_ = Now();
  Say(unanswered + ", for " + Seconds(std::floor(notice)) + options_.limits.Prospect());
}

// An operation, or a question, waits for a server that has sent a batch which cannot be read to its
// end, after that has begun: what it waits for may have been in there. Cores of Slim-DP are told
// before.
std::string Worker::UnreadBatch() {
  return unreadable_.OverdueBatch(
      options_.limits.silence, [this](int server, double came) -> std::optional<double> {
        for (Key* key : Keys()) {
          std::lock_guard<std::mutex> lock(key->mutex);
          if (!key->busy || key->AwaitedServers().count(server) == 0) continue;
          const bool for_cores = !key->admitted && key->codec->awaited().empty();
          if (key->since <= came || for_cores) return key->since;
        }
        std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& [question, asked] : asked_) {
          const bool waits = asked.server == server && Waits(question, asked);
          if (waits && asked.since <= came) return asked.since;
        }
        return std::nullopt;
      });
}

std::string Worker::LostOnTheWay() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!parted_.empty()) return "";
  return LostMessagesOf("server", hosts_, links_, options_.limits.silence);
}

void Worker::GiveSigns() {
  const std::set<int> greeted = Greeted();
  for (int server : greeted) links_[server]->SendSign(ControlMessage(MessageType::kCredit));
  MeasureClocks();
  // Where servers have a lane, the scheduler has one.
  if (!greeted.empty()) scheduler_.GiveSign();
}

// Whether servers give no sign of life any more. Says which once that is settled, and a key that
// waits for them. Once a server has said farewell, nobody is missed.
bool Worker::LosesServers(std::string* which) {
  const double awake = awake_.Since();
  Limits::Loss loss;
  std::string within;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!parted_.empty()) return false;
    std::map<int, double> silent;
    for (const auto& server : hosts_) {
      silent[server.first] = links_[server.first]->signs().Silence(Now(), awake);
    }
    loss = options_.limits.LossAmong(silent);
    within = ", within " + Seconds(options_.limits.silence) + Where("server", loss.dead, hosts_);
  }
  if (loss.dead.empty()) return false;
  if (loss.settled) *which = Named(WhatOf(loss.dead) + within);
  return true;
}

// What servers that are lost have not done.
std::string Worker::WhatOf(const std::set<int>& lost) {
  for (Key* key : Keys()) {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (!key->busy) continue;
    for (int server : key->AwaitedServers()) {
      if (lost.count(server) == 0) continue;
      return "no answer from " + Who("server", lost) + " for key " + key->declared.name +
             ", round " + std::to_string(key->last_round());
    }
  }
  return "no sign of life from " + Who("server", lost);
}

// Says for whom a key's operation has waited too long; empty if it has not.
std::string Worker::Overdue(Key* key) {
  const double limit = options_.limits.patience;
  std::lock_guard<std::mutex> lock(key->mutex);
  if (!key->busy || Now() - key->since < Limits::Later(limit)) return "";
  const std::set<int> servers = key->AwaitedServers();
  const std::string what = "key " + key->declared.name + ", round " +
                           std::to_string(key->last_round()) + ", within " + Seconds(limit);
  if (servers.empty()) return Named("this worker has not written the results of " + what);
  return Named("no answer from " + Who("server", servers) + " for " + what);
}

// Who has not answered for a key's operation for so many seconds, and which; empty if there is
// none.
std::string Worker::Unanswered(Key* key, double seconds, std::set<int>* servers) {
  std::lock_guard<std::mutex> lock(key->mutex);
  if (!key->busy || Now() - key->since < seconds) return "";
  *servers = key->AwaitedServers();
  if (servers->empty()) return "";
  return WhoHave("server", *servers) + " not answered for key " + key->declared.name + ", round " +
         std::to_string(key->last_round());
}

// What no server tells of, since it is busy: who has not answered for so many seconds.
std::string Worker::Unanswered(double seconds) {
  const std::string stock = stock_.Overdue(seconds);
  if (!stock.empty()) return "MXNet's own servers have not " + stock;
  for (Key* key : Keys()) {
    std::set<int> servers;
    const std::string late = Unanswered(key, seconds, &servers);
    if (late.empty()) continue;
    std::lock_guard<std::mutex> lock(mutex_);
    return late + Where("server", servers, hosts_);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [question, asked] : asked_) {
    if (!Waits(question, asked) || Now() - asked.since < seconds) continue;
    const std::set<int> servers = {asked.server};
    return WhoHave("server", servers) + " not answered a question" +
           Where("server", servers, hosts_);
  }
  return "";
}

void Worker::OnNotice(const Message& message) {
  noticed_ = Now();
  if (IsSaid(message)) Say(message.text);
}

void Worker::Say(const std::string& notice) {
  kvstore_ext::Say("kvstore_ext worker " + std::to_string(options_.rank) +
                   " waits: " + Printable(notice));
}

void Worker::StockLeaves(const std::vector<int64_t>& bytes) {
  for (size_t server = 0; server < bytes.size(); ++server) {
    if (bytes[server] != 0) links_[server]->StockLeaves(bytes[server]);
  }
}

int Worker::BeginPull(const std::string& what, const std::vector<int64_t>& bytes) {
  for (size_t server = 0; server < bytes.size(); ++server) {
    links_[server]->signs().AwaitBytes(bytes[server], Now());
  }
  return stock_.Begin(what);
}

void Worker::EndPull(int number, const std::vector<int64_t>& bytes) {
  for (size_t server = 0; server < bytes.size(); ++server) {
    links_[server]->signs().AwaitBytes(-bytes[server], Now());
  }
  stock_.End(number);
}

}  // namespace kvstore_ext
