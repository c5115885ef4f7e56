#include "server/server.h"

#include <algorithm>
#include <stdexcept>

#include "support/clock.h"
#include "support/ranks.h"
#include "transport/arrivals.h"

namespace kvstore_ext {

Server::Server(const ServerOptions& options, std::shared_ptr<Transport> transport)
    : options_(options),
      transport_(std::move(transport)),
      gate_(
          Side::kServer, [this](const Message& message) { CheckFits(message); },
          [this](const Message& message) {
            return message.peer >= 0 && links_[message.peer]->HasChecksum(message);
          }),
      scheduler_(transport_, options.limits.silence / 2,
                 options.job_name.empty() ? 0 : options.job),
      meetings_(options.workers),
      idle_(options.workers),
      progress_(options.workers),
      awake_(options.limits.silence / 2) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    links_.push_back(
        std::make_unique<Link>(transport_, worker, nullptr, nullptr, &sender_, &gate_, &recorder_));
    links_.back()->SetJob(options_.job);
    links_.back()->LetDataCarryCredit();
  }
  if (options_.shared_memory) door_.emplace();
  transport_->Start([this](Message message) {
    try {
      OnArrival(std::move(message));
    } catch (const Damaged& damage) {
      OnDamage(damage);
    } catch (const std::exception& error) {
      Abort(Named(error.what()));
    }
  });
  watchdog_.Start(
      options_.limits.Interval(), [this] { CheckDeadlines(); },
      // As where ps-lite finds no way to send.
      [this](const std::exception& error) { Abort(Named(error.what())); });
}

Server::~Server() { Stop(); }

void Server::OnArrival(Message message) {
  TakeIn(std::move(message), &gate_, &unreadable_, &scheduler_, links_,
         [this](const Message& whole) { ActUpon(whole); });
}

void Server::ActUpon(const Message& message) {
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
    case MessageType::kIdle: return OnIdle(message);
    case MessageType::kOrder: return Forward(message);
    case MessageType::kWindow:
      if (FollowWindow(message, &windows_, links_)) Forward(message);
      return;
    case MessageType::kAsk:
      questions_.Push(0, 0, {message.peer, QuestionOf(message), message.text, message.payload});
      return;
    case MessageType::kMeet: return OnMeet(message);
    case MessageType::kLeave: return OnLeave(message);
    case MessageType::kBye: gone_.insert(message.peer); return;
    default: return;
  }
}

void Server::OnDamage(const Damaged& damage) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::string text = damage.Told("worker", hosts_);
  lock.unlock();
  Abort(Named(text));
}

void Server::UseOptimizer(int32_t store) {
  std::lock_guard<std::mutex> lock(mutex_);
  optimized_.insert(store);
  // What was changed of the one before is nothing to this one.
  for (auto& key : keys_) {
    if (key.second.store != store) continue;
    for (auto& slice : key.second.slices) slice.second.settings.clear();
  }
}

bool Server::NextQuestion(Question* question) { return questions_.Pop(question); }

void Server::Reply(const Question& question, const std::string& text, const Buffer& payload) {
  links_[question.worker]->Send(
      QuestionMessage(MessageType::kAnswer, question.number, text, payload));
}

bool Server::NextUpdate(Update* update) {
  if (!updates_.Pop(update)) return false;
  update->taken = recorder_.Begin();
  return true;
}

std::vector<Update> Server::NextUpdates(size_t most, size_t few_elements) {
  std::vector<Update> updates(1);
  if (!NextUpdate(&updates.back())) return {};
  while (updates.size() < most && updates.back().elements <= few_elements) {
    Update next;
    if (!updates_.TryPop(&next)) break;
    next.taken = recorder_.Begin();
    updates.push_back(std::move(next));
  }
  return updates;
}

void Server::Updated(const Update& update) {
  if (recorder_.on()) {
    Event event;
    event.kind = EventKind::kUpdated;
    event.key = update.key;
    event.slice = static_cast<int32_t>(update.slice);
    event.round = static_cast<uint32_t>(update.round);
    event.bytes = static_cast<uint32_t>(update.value.size);
    event.begin = update.taken;
    recorder_.Record(event);
  }
  // MXNet's engine, on whose thread this may be, would keep to itself what is thrown.
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    const SliceName name(update.key, update.slice);
    SliceState& slice = SliceOf(name);
    slice.updating = false;
    Publish(name, &slice);
  } catch (const std::exception& error) {
    Abort(Named(error.what()));
  }
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

void Server::OnMeet(const Message& message) {
  const std::string& what = message.text;
  const Meetings::About about(message.header.key, what);
  for (int worker : meetings_.Come(about, message.peer, Waits(message), Now())) {
    links_[worker]->SendControl(ControlMessage(MessageType::kMet, what));
  }
  if (IsOfSparseRound(message)) OnSparse(message);
  CheckMeetings();
}

// Only those in which somebody waits: a worker that does not may have left before its words come,
// since ps-lite keeps no order. And an idle one comes to the others by itself.
void Server::CheckMeetings() const {
  for (const auto& open : meetings_.open()) {
    const Meetings::Meeting& meeting = open.second;
    if (meeting.waiting.empty()) continue;
    const std::string what = (meeting.present.size() == 1 ? "has " : "have ") + open.first.second;
    CheckNotLeft(meeting.present, what);
    CheckNotIdle(meeting.present, what);
  }
}

void Server::OnLeave(const Message& message) {
  const int worker = message.peer;
  if (left_.empty()) left_since_ = Now();
  left_.insert(worker);
  sparse_.Begin(worker, IdleNotice::Unpack(message.text).sparse);
  if (left_.size() == links_.size()) return SayFarewell();
  if (idle_.Has(worker)) {
    throw std::runtime_error("worker " + std::to_string(worker) +
                             " has left while it waited in store.join, which it did not end");
  }
  if (!idle_.none()) {
    throw std::runtime_error("worker " + std::to_string(worker) + " has left, but " +
                             WhoHave("worker", idle_.ranks()) +
                             " joined: all workers call store.join as often");
  }
  CheckNotLeftBehind(worker);
  CheckMeetings();
  for (const auto& entry : keys_) {
    const Key& key = entry.second;
    CheckNotLeft(key, key.scalers.senders(), key.scalers.round());
    for (const auto& slice : key.slices) {
      CheckNotLeft(key, slice.second.reduction->heard(), slice.second.round);
    }
  }
}

// From here on nobody waits for anybody who might be gone: a job whose work is done has not failed.
void Server::SayFarewell() {
  farewell_since_ = Now();
  ToAll(MessageType::kFarewell);
  scheduler_.Send(ControlMessage(MessageType::kFarewell));
  // Workers end ps-lite now, at different times.
  for (auto& link : links_) link->Hush();
  scheduler_.Close();
}

bool Server::Over() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (farewell_since_ == 0) return false;
  return gone_.size() == links_.size() || Now() - farewell_since_ > kLastWords;
}

// Of those who have left nobody may be missing in what others have begun.
void Server::CheckNotLeft(const std::set<int>& present, const std::string& what) const {
  for (int worker : left_) {
    if (present.empty() || present.count(worker) != 0) continue;
    throw std::runtime_error("worker " + std::to_string(worker) + " has left, but " +
                             Who("worker", present) + " " + what + kUneven);
  }
}

void Server::CheckNotLeft(const Key& key, const std::set<int>& heard, uint64_t round) const {
  if (left_.empty()) return;
  CheckNotLeft(heard, "pushed key " + key.name + ", round " + std::to_string(round));
}

void Server::ToAll(MessageType type, const std::string& text) {
  for (auto& link : links_) link->SendControl(ControlMessage(type, text));
}

void Server::Abort(const std::string& reason) {
  std::set<int> greeted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (farewell_since_ > 0) return;
    greeted = RanksOf(hosts_);
    // Whoever is greeted after this hears of it then.
    if (!failure_.Set(reason)) return;
  }
  for (auto& link : links_) link->Close();
  const std::string told = failure_.reason();
  const Message message = ControlMessage(MessageType::kAbort, told);
  for (int worker : greeted) Attempt([&] { links_[worker]->SendControl(message); });
  // Before anybody has come, ps-lite may not have a connection to the scheduler either.
  if (!greeted.empty()) Attempt([&] { scheduler_.Send(message); });
  updates_.Close();
  questions_.Close();
  for (const auto& method : options_.methods) method.second->End(told);
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

std::vector<WorkerProgress> Server::progress() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<WorkerProgress> progress = progress_;
  for (const auto& key : keys_) {
    for (const auto& slice : key.second.slices) {
      const std::set<int>& heard = slice.second.reduction->heard();
      if (heard.empty() || slice.second.round == 0) continue;
      for (int worker : MissingIn(heard)) {
        double* missing = &progress[worker].missing;
        *missing = std::max(*missing, Now() - slice.second.since);
      }
    }
  }
  return progress;
}

Traffic Server::traffic() const {
  Traffic traffic;
  for (const auto& link : links_) link->AddTo(&traffic);
  return traffic;
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

std::string Server::Named(const std::string& what) const {
  return "server " + std::to_string(rank_) + ": " + what;
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
