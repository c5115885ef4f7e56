// A worker that has run out of work: store.join (worker.h, server/server_idle.cc).
#include <chrono>

#include "worker/worker_key.h"

namespace kvstore_ext {

void Worker::MeetSparse(uint64_t number, const std::string& what) {
  uint64_t round = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    round = ++sparse_[number];
  }
  const std::string in_round = what + ", round " + std::to_string(round);
  links_.front()->SendControl(MeetInRound(in_round, number, round));
}

void Worker::BeginIdle(bool mean) {
  // Again, once a script has caught what interrupted its waiting: what is demanded still is.
  if (idle_.exchange(true)) return;
  IdleNotice notice;
  notice.mean = mean;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    demands_.clear();  // those that nobody has taken are of an earlier time
  }
  NotifyWhenDone(MessageType::kIdle, std::move(notice));
}

// Of sparse keys only server 0 knows.
void Worker::NotifyWhenDone(MessageType type, IdleNotice notice) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // Ends with the operations, or the job's failure.
    changed_.wait(lock, [this] { return open_operations_ == 0; });
    notice.sparse = sparse_;
  }
  failure_.ThrowIfSet();
  for (auto& link : links_) {
    link->SendControl(ControlMessage(type, notice.Pack()));
    notice.sparse.clear();
  }
}

// Each worker that works is watched by others, so that a script's waiting ends when one is lost.
std::optional<uint64_t> Worker::AwaitDemand(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] {
    return !demands_.empty() || resumptions_.size() == links_.size() || !failure_.reason().empty();
  });
  failure_.ThrowIfSet();
  if (demands_.empty()) return std::nullopt;
  Demand& first = demands_.front();
  const uint64_t number = first.number;
  if (--first.times == 0) demands_.pop_front();
  return number;
}

std::optional<std::set<int>> Worker::EndIdle() {
  std::map<int, Resumption> resumptions;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (resumptions_.size() < links_.size()) return std::nullopt;
    resumptions.swap(resumptions_);
  }
  std::set<int> missed;
  for (const auto& [server, resumption] : resumptions) {
    missed.insert(resumption.missed.begin(), resumption.missed.end());
    for (const auto& [id, round] : resumption.rounds) SkipTo(Find(id), round);
  }
  idle_ = false;
  return missed;
}

// No key has an operation then.
void Worker::SkipTo(Key* key, uint64_t round) {
  std::lock_guard<std::mutex> lock(key->mutex);
  key->missed = false;  // it is level with the others
  if (key->rounds == round) return;
  key->rounds = round;
  key->kept.clear();
  key->codec->Skip(round - 1);
}

}  // namespace kvstore_ext
