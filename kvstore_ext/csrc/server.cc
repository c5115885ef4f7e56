#include "server.h"

#include <algorithm>
#include <stdexcept>

namespace kvstore_ext {

Server::Server(const ServerOptions& options, std::shared_ptr<Transport> transport)
    : options_(options), transport_(std::move(transport)) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    links_.push_back(std::make_unique<Link>(transport_, worker));
  }
  transport_->Start([this](Message message) {
    Link& link = *links_[message.peer];
    try {
      if (link.Receive(&message)) OnMessage(message);
    } catch (const std::exception& error) {
      Abort("server " + std::to_string(rank_) + ": " + error.what());
    }
    link.Acknowledge();
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
    case MessageType::kCore: return OnCore(message);
    case MessageType::kOrder: return Forward(message);
    case MessageType::kWindow:
      if (FollowWindow(message, &windows_, links_)) Forward(message);
      return;
    case MessageType::kAsk:
      questions_.Push(0, 0, {message.peer, message.header.key, message.text, message.payload});
      return;
    case MessageType::kLeave: return OnLeave(message.peer);
    default: return;
  }
}

void Server::OnJoin(const Message& message) {
  if (joined_.empty()) joining_since_ = Now();
  joined_[message.peer] = message.text;
  deterministic_ = message.header.slice != 0;  // the text has it too, so it is everybody's
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
  Message message;
  message.header.type = MessageType::kAnswer;
  message.header.key = question.number;
  message.text = text;
  message.payload = payload;
  links_[question.worker]->Send(std::move(message));
}

bool Server::NextUpdate(Update* update) { return updates_.Pop(update); }

void Server::Updated(const Update& update) {
  std::lock_guard<std::mutex> lock(mutex_);
  SliceState& slice = keys_.at(update.key).slices.at(update.slice);
  slice.updating = false;
  Publish(update.key, update.slice, &slice);
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
    CheckNotLeft(key, key.scalers.Senders(), key.scalers.round);
    for (const auto& slice : key.slices) {
      CheckNotLeft(key, slice.second.sum.heard(), slice.second.round);
    }
  }
}

// Of those who have left nobody may be missing in a round that others have begun.
void Server::CheckNotLeft(const Key& key, const std::set<int>& heard, uint64_t round) const {
  for (int worker : left_) {
    if (heard.empty() || heard.count(worker) != 0) continue;
    throw std::runtime_error("worker " + std::to_string(worker) + " has left, but worker " +
                             Ranks(heard) + " pushed key " + key.name + ", round " +
                             std::to_string(round));
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
  completed_.notify_all();
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
    return "worker " + Ranks(Missing(present, options_.workers)) +
           " has not opened its store within " + Seconds(options_.timeout);
  }
  for (const auto& entry : keys_) {
    const Scalers& scalers = entry.second.scalers;
    if (!scalers.heard.empty() && scalers.since <= limit) {
      return "worker " + Ranks(Missing(scalers.Senders(), options_.workers)) +
             " has not sent the scaler of key " + entry.second.name + ", round " +
             std::to_string(scalers.round) + ", which worker " + Ranks(scalers.Senders()) +
             " did, within " + Seconds(options_.timeout);
    }
    for (const auto& numbered : entry.second.slices) {
      const SliceState& slice = numbered.second;
      const bool waits = !slice.sum.heard().empty() || slice.updating;
      if (!waits || slice.since > limit) continue;
      const std::string round =
          "key " + entry.second.name + ", round " + std::to_string(slice.round);
      if (slice.updating) {
        return "the optimizer has not updated " + round + ", within " + Seconds(options_.timeout);
      }
      return "worker " + Ranks(slice.sum.missing()) +
             (slice.round == 0 ? " has not initialised " : " has not pushed ") + round +
             ", which worker " + Ranks(slice.sum.heard()) + " did, within " +
             Seconds(options_.timeout);
    }
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

std::vector<float> Server::Carried(uint64_t key, uint32_t slice) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return keys_.at(key).slices.at(slice).carried;
}

void Server::SetCarried(uint64_t key, uint32_t slice, uint64_t drawn, std::vector<float> carried) {
  std::lock_guard<std::mutex> lock(mutex_);
  SliceState& state = keys_.at(key).slices.at(slice);
  const size_t elements = keys_.at(key).elements.at(slice);
  if (!carried.empty() && carried.size() != elements) {
    throw std::invalid_argument("slice " + std::to_string(slice) + " of key " + keys_.at(key).name +
                                " has " + std::to_string(elements) + " elements; got " +
                                std::to_string(carried.size()));
  }
  state.carried = std::move(carried);
  state.earlier_rounds = drawn + 1 - state.round;
}

size_t Server::held_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t bytes = 0;
  for (const auto& entry : keys_) {
    for (const auto& slice : entry.second.slices) {
      bytes += slice.second.value.size + slice.second.sum.held_bytes() +
               slice.second.carried.size() * sizeof(float) +
               (slice.second.slim == nullptr ? 0 : slice.second.slim->held_bytes());
    }
  }
  return bytes;
}

void Server::EndWaits() {
  updates_.Close();
  questions_.Close();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  completed_.notify_all();
  failure_.EndWaits();
}

void Server::Stop() {
  watchdog_.Stop();
  EndWaits();
  for (auto& link : links_) link->Close();
  transport_->Stop();
}

}  // namespace kvstore_ext
