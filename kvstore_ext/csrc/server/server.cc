#include "server/server.h"

#include <algorithm>
#include <stdexcept>

#include "support/clock.h"
#include "support/ranks.h"

namespace kvstore_ext {
namespace {

constexpr char kUneven[] = ": do all workers have the same number of batches?";

}  // namespace

Server::Server(const ServerOptions& options, std::shared_ptr<Transport> transport)
    : options_(options), transport_(std::move(transport)) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    links_.push_back(std::make_unique<Link>(transport_, worker, nullptr, nullptr, &sender_));
  }
  transport_->Start([this](Message message) {
    Link& link = *links_[message.peer];
    try {
      link.Receive(std::move(message), [this](const Message& whole) { OnMessage(whole); });
    } catch (const std::exception& error) {
      Abort("server " + std::to_string(rank_) + ": " + error.what());
    }
  });
  watchdog_.Start(std::min(1.0, options_.timeout / 20), [this] { CheckDeadlines(); });
}

Server::~Server() { Stop(); }

void Server::Greet(int worker) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    greeted_.insert(worker);
  }
  links_[worker]->SendControl(ControlMessage(MessageType::kHello));
  // A worker that comes after the failure has to hear of it as well.
  const std::string reason = failure_.reason();
  if (!reason.empty()) links_[worker]->SendControl(ControlMessage(MessageType::kAbort, reason));
}

void Server::OnMessage(const Message& message) {
  if (message.header.type == MessageType::kAbort) return Abort(message.text);
  std::lock_guard<std::mutex> lock(mutex_);
  switch (message.header.type) {
    case MessageType::kJoin: return OnJoin(message);
    case MessageType::kInit: return OnInit(message);
    case MessageType::kPush: return OnPush(message);
    case MessageType::kPull: return OnPull(message);
    case MessageType::kScaler: return OnScaler(message);
    case MessageType::kMethod:
      return SliceOf({message.header.key, message.header.slice}).reduction->OnMessage(message);
    case MessageType::kOrder: return Forward(message);
    case MessageType::kWindow:
      if (FollowWindow(message, &windows_, links_)) Forward(message);
      return;
    case MessageType::kAsk:
      questions_.Push(0, 0, {message.peer, QuestionOf(message), message.text, message.payload});
      return;
    case MessageType::kLeave: return OnLeave(message.peer);
    default: return;
  }
}

void Server::OnJoin(const Message& message) {
  if (joined_.empty()) joining_since_ = Now();
  joined_[message.peer] = message.text;
  deterministic_ = IsDeterministic(message);  // the text has it too, so it is everybody's
  const auto& first = *joined_.begin();
  for (const auto& other : joined_) {
    if (other.second == first.second) continue;
    throw std::runtime_error("workers opened different stores: worker " +
                             std::to_string(first.first) + " has " + first.second + ", worker " +
                             std::to_string(other.first) + " has " + other.second);
  }
  if (joined_.size() == links_.size()) ToAll(MessageType::kWelcome);
}

void Server::UseOptimizer(int32_t store) {
  std::lock_guard<std::mutex> lock(mutex_);
  optimized_.insert(store);
}

bool Server::NextQuestion(Question* question) { return questions_.Pop(question); }

void Server::Reply(const Question& question, const std::string& text, const Buffer& payload) {
  links_[question.worker]->Send(
      QuestionMessage(MessageType::kAnswer, question.number, text, payload));
}

bool Server::NextUpdate(Update* update) { return updates_.Pop(update); }

void Server::Updated(const Update& update) {
  std::lock_guard<std::mutex> lock(mutex_);
  const SliceName name(update.key, update.slice);
  SliceState& slice = SliceOf(name);
  slice.updating = false;
  Publish(name, &slice);
}

void Server::UpdateFailed(Update update) {
  update.failed = true;
  updates_.Push(kControlPriority, 0, std::move(update));
}

// What rank 0 tells the other workers.
void Server::Forward(const Message& message) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (worker != message.peer) links_[worker]->SendControl(message);
  }
}

void Server::OnLeave(int worker) {
  left_.insert(worker);
  if (left_.size() == links_.size()) {
    ToAll(MessageType::kFarewell);
    // ps-lite may end at any moment from now on, and aborts who sends after that.
    for (auto& link : links_) link->Hush();
    return;
  }
  for (const auto& entry : keys_) {
    const Key& key = entry.second;
    CheckNotLeft(key, key.scalers.senders(), key.scalers.round());
    for (const auto& slice : key.slices) {
      CheckNotLeft(key, slice.second.reduction->heard(), slice.second.round);
    }
  }
}

// Of those who have left nobody may be missing in a round that others have begun.
void Server::CheckNotLeft(const Key& key, const std::set<int>& heard, uint64_t round) const {
  for (int worker : left_) {
    if (heard.empty() || heard.count(worker) != 0) continue;
    throw std::runtime_error("worker " + std::to_string(worker) + " has left, but " +
                             Who("worker", heard) + " pushed key " + key.name + ", round " +
                             std::to_string(round) + kUneven);
  }
}

void Server::ToAll(MessageType type, const std::string& text) {
  for (auto& link : links_) link->SendControl(ControlMessage(type, text));
}

void Server::Abort(const std::string& reason) {
  if (!failure_.Set(reason)) return;
  for (auto& link : links_) link->Close();
  std::set<int> greeted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    greeted = greeted_;
  }
  Message message = ControlMessage(MessageType::kAbort, reason);
  for (int worker : greeted) links_[worker]->SendControl(message);
  // Before anybody has come, ps-lite may not have a connection to the scheduler either.
  if (!greeted.empty()) {
    message.peer = kScheduler;
    transport_->Send(message);
  }
  updates_.Close();
  questions_.Close();
  for (const auto& method : options_.methods) method.second->End(reason);
}

void Server::CheckDeadlines() {
  // A little before the workers' own limit, since only a server knows who is missing.
  std::string overdue;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& worker : joined_) {
      links_[worker.first]->SendControl(ControlMessage(MessageType::kCredit));
    }
    overdue = Overdue(Now() - options_.timeout * 0.9);
  }
  if (!overdue.empty()) Abort("server " + std::to_string(rank_) + ": " + overdue);
}

std::string Server::Overdue(double limit) const {
  if (!joined_.empty() && joined_.size() < links_.size() && joining_since_ < limit) {
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
  const std::string late = "within " + Seconds(options_.timeout);
  const std::set<int> senders = key.scalers.senders();
  if (!senders.empty() && key.scalers.since() <= limit) {
    const std::set<int> missing = Missing(senders, options_.workers);
    return WhoHave("worker", missing) + " not sent the scaler of key " + key.name + ", round " +
           std::to_string(key.scalers.round()) + ", which " + Who("worker", senders) + " did, " +
           late + Suspicion(missing);
  }
  for (const auto& numbered : key.slices) {
    const SliceState& slice = numbered.second;
    const std::set<int>& heard = slice.reduction->heard();
    const bool waits = !heard.empty() || slice.updating;
    if (!waits || slice.since > limit) continue;
    const std::string round = "key " + key.name + ", round " + std::to_string(slice.round);
    if (slice.updating) return "the optimizer has not updated " + round + ", " + late;
    const std::set<int> missing = Missing(heard, options_.workers);
    return WhoHave("worker", missing) + (slice.round == 0 ? " not initialised " : " not pushed ") +
           round + ", which " + Who("worker", heard) + " did, " + late +
           (slice.round == 0 ? "" : Suspicion(missing));
  }
  return "";
}

// Why workers that are late with a round may be so: those that still give signs of life have not
// crashed.
std::string Server::Suspicion(const std::set<int>& late) const {
  for (int worker : late) {
    if (Now() - links_[worker]->last_heard() > options_.timeout / 2) return "";
  }
  return kUneven;
}

std::vector<float> Server::CarriedOver(const SliceName& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return keys_.at(name.first).slices.at(name.second).reduction->carried_over();
}

void Server::CarryOver(const SliceName& name, uint64_t rounds, std::vector<float> values) {
  std::lock_guard<std::mutex> lock(mutex_);
  SliceState& slice = SliceOf(name);
  slice.reduction->CarryOver(rounds, slice.round, std::move(values));
}

void Server::SetValue(const SliceName& name, const Buffer& value) {
  std::lock_guard<std::mutex> lock(mutex_);
  SliceOf(name).reduction->SetValue(value);
}

size_t Server::held_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t bytes = 0;
  for (const auto& key : keys_) {
    for (const auto& slice : key.second.slices) bytes += slice.second.reduction->held_bytes();
  }
  return bytes;
}

void Server::EndWaits() {
  updates_.Close();
  questions_.Close();
  for (const auto& method : options_.methods) method.second->End("");
  failure_.EndWaits();
}

void Server::Stop() {
  watchdog_.Stop();
  EndWaits();
  for (auto& link : links_) link->Close();
  sender_.Stop();
  transport_->Stop();
}

Server::Key& Server::KeyOf(uint64_t id) {
  const auto found = keys_.find(id);
  if (found != keys_.end()) return found->second;
  throw std::out_of_range("key " + std::to_string(id) + " was never initialised");
}

Server::SliceState& Server::SliceOf(const SliceName& name) {
  Key& key = KeyOf(name.first);
  const auto found = key.slices.find(name.second);
  if (found != key.slices.end()) return found->second;
  throw std::out_of_range("key " + key.name + " has no slice " + std::to_string(name.second) +
                          " here");
}

}  // namespace kvstore_ext
