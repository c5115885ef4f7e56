// How workers come: they are greeted, then join, and are welcome once all have.
#include <stdexcept>

#include "server/server.h"
#include "support/clock.h"
#include "support/this_host.h"

namespace kvstore_ext {
namespace {

std::string JobNamed(const std::string& name) {
  return name.empty() ? "of no job with a name" : "of job " + name;
}

}  // namespace

void Server::Greet(int worker, const std::string& host, const std::string& job_name) {
  if (worker < 0 || worker >= options_.workers) {
    return gate_.Refuse("a greeting of worker " + std::to_string(worker), "there is none");
  }
  if (job_name != options_.job_name) return RefuseGreeting(worker, host, job_name);
  links_[worker]->signs().Heard(Now());  // it gives signs of life from now on
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (hosts_.empty()) greeted_since_ = Now();
    hosts_[worker] = host;
  }
  links_[worker]->SendControl(HelloMessage(ThisHost(), door_ ? door_->number() : 0));
  // At once, so that the scheduler misses a job which dies before the next one.
  scheduler_.GiveSign();
  // A worker that comes after the failure has to hear of it as well.
  const std::string reason = failure_.reason();
  if (!reason.empty()) links_[worker]->SendControl(ControlMessage(MessageType::kAbort, reason));
}

// Where the worker's rank is taken by one of another job, nobody else can have it any more.
void Server::RefuseGreeting(int worker, const std::string& host, const std::string& job_name) {
  const std::string reason = "worker " + std::to_string(worker) + " on " + host + " is " +
                             JobNamed(job_name) + ", and server " + std::to_string(rank_) + " on " +
                             ThisHost() + " " + JobNamed(options_.job_name) +
                             ": both have come to one scheduler";
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (hosts_.count(worker) != 0) return gate_.Refuse("a greeting", reason);
  }
  const Message message = ControlMessage(MessageType::kAbort, reason);
  links_[worker]->SendControl(message);
  scheduler_.Send(message);  // which Abort does once somebody was greeted
  Abort(reason);
}

void Server::OnJoin(const Message& message) {
  joined_[message.peer] = message.text;
  deterministic_ = IsDeterministic(message);  // the text has it too, so it is everybody's
  const auto& first = *joined_.begin();
  for (const auto& other : joined_) {
    if (other.second == first.second) continue;
    throw std::runtime_error("workers opened different stores: worker " +
                             std::to_string(first.first) + " has " + first.second + ", worker " +
                             std::to_string(other.first) + " has " + other.second);
  }
  Share(message);
  if (joined_.size() < links_.size()) return;
  for (int worker = 0; worker < options_.workers; ++worker) {
    links_[worker]->SendControl(WelcomeMessage(sharing_.count(worker) != 0));
  }
}

// From here on the worker may say where its payloads lie; the server's follow its first ones.
void Server::Share(const Message& join) {
  const int worker = join.peer;
  if (!door_ || MemoryOf(join) == 0) return;
  std::shared_ptr<SharedMemory> memory = door_->Take(worker, MemoryOf(join));
  if (memory == nullptr) return;
  transport_->Share(worker, std::move(memory));
  if (!HasWindow(join)) links_[worker]->UseSharedWindow();
  sharing_.insert(worker);
}

}  // namespace kvstore_ext
