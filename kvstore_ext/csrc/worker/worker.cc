#include "worker/worker.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/clock.h"
#include "support/ranks.h"
#include "transport/arrivals.h"
#include "worker/worker_key.h"

namespace kvstore_ext {

Worker::Worker(const WorkerOptions& options, std::shared_ptr<Transport> transport)
    : options_(options),
      transport_(std::move(transport)),
      gate_(
          Side::kWorker, [this](const Message& message) { CheckFits(message); },
          [this](const Message& message) {
            return message.peer >= 0 && links_[message.peer]->HasChecksum(message);
          }),
      scheduler_(transport_, options.limits.silence / 2, options.job),
      learner_([this](const std::vector<uint64_t>& order, uint64_t number) {
        AnnounceOrder(order, number);
      }),
      awake_(options.limits.silence / 2),
      tasks_(options.encode_threads) {
  if (options_.rank == 0 && options_.window_bytes == 0) {
    estimator_ =
        std::make_shared<WindowEstimator>(options_.slice_bytes, options_.servers,
                                          [this](const Window& advice) { AnnounceWindow(advice); });
  }
  for (int server = 0; server < options_.servers; ++server) {
    const auto on_send = [this](const Message& message) {
      const Header& header = message.header;
      if (header.type == MessageType::kPush) statistics_.Left(header.key, header.slice);
    };
    links_.push_back(std::make_unique<Link>(transport_, server, estimator_, on_send, &sender_,
                                            &gate_, &recorder_));
    if (options_.checksum) links_.back()->UseChecksums();
  }
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

Worker::~Worker() { Stop(); }

void Worker::Await(const std::set<int>& servers, size_t least, const char* what, double limit) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(Limits::Later(limit)),
                      [&] { return servers.size() >= least || !failure_.reason().empty(); });
  }
  RequireAnswers(servers, least, what, limit);
}

// Fails where fewer have answered within that time, which is over.
void Worker::RequireAnswers(const std::set<int>& servers, size_t least, const char* what,
                            double limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (servers.size() < least && failure_.reason().empty()) {
    const std::set<int> missing = Missing(servers, options_.servers);
    lock.unlock();
    Abort(Named("within " + Seconds(limit) + " " + WhoHave("server", missing) + " not " + what));
  }
  failure_.ThrowIfSet();
}

void Worker::Meet(const std::string& what, bool waits) {
  links_[0]->SendControl(MeetMessage(what, waits));
}

bool Worker::AwaitMeeting(const std::string& what, double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return met_.count(what) != 0 || !failure_.reason().empty(); });
  failure_.ThrowIfSet();
  return met_.erase(what) > 0;
}

void Worker::Declare(uint64_t id, const SliceDeclaration& declaration,
                     std::shared_ptr<KeyCodec> codec) {
  {
    // Before the codec gets to know a key that would not stay.
    std::lock_guard<std::mutex> lock(mutex_);
    if (keys_.count(id) != 0) {
      throw std::invalid_argument("key " + declaration.name + " is declared already");
    }
  }
  SliceDeclaration declared = declaration;
  declared.method = codec->specification();
  std::vector<Slice> slices =
      SliceKey(id, declared.elements, codec->bytes_per_element(declared.dtype),
               options_.slice_bytes, options_.servers, codec->alignment());
  auto key = std::make_unique<Key>(this, id, declared, std::move(codec), std::move(slices));
  key->codec->Attach(key.get());
  std::lock_guard<std::mutex> lock(mutex_);
  keys_.emplace(id, std::move(key));
}

std::vector<Slice> Worker::Slices(uint64_t key) const { return Find(key)->cut; }

uint64_t Worker::Ask(int server, const std::string& text, const Buffer& payload) {
  uint64_t question = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    question = ++questions_;
    asked_[question] = {server, Now()};
  }
  links_.at(server)->Send(QuestionMessage(MessageType::kAsk, question, text, payload));
  return question;
}

std::optional<Answer> Worker::AwaitAnswer(uint64_t question, double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  const double limit = options_.limits.patience;
  double& awaited = asked_.at(question).awaited;
  if (awaited == 0) awaited = Now();
  // A server that waits for workers first gives that up a moment after its watchdog.
  const double latest = awaited + Limits::Later(Limits::Later(limit));
  const double left = std::min(seconds, latest - Now());
  changed_.wait_for(lock, std::chrono::duration<double>(left),
                    [&] { return answers_.count(question) != 0 || !failure_.reason().empty(); });
  failure_.ThrowIfSet();
  auto found = answers_.find(question);
  if (found == answers_.end()) {
    if (Now() < latest) return std::nullopt;
    Asked& asked = asked_.at(question);
    asked.given_up = true;
    throw std::runtime_error(Named("within " + Seconds(limit) + " " +
                                   WhoHave("server", {asked.server}) + " not answered a question"));
  }
  asked_.erase(question);
  Answer answer = std::move(found->second);
  answers_.erase(found);
  return answer;
}

bool Worker::IsAnswered(uint64_t question) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return answers_.count(question) != 0;
}

void Worker::GiveUp(uint64_t question) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto asked = asked_.find(question);
  if (asked == asked_.end()) return;
  if (answers_.erase(question) > 0) {
    asked_.erase(asked);
  } else {
    asked->second.given_up = true;
  }
}

// Under the lock.
bool Worker::Waits(uint64_t question, const Asked& asked) const {
  return !asked.given_up && answers_.count(question) == 0;
}

// Under the lock.
void Worker::OnAnswer(const Message& message) {
  const auto asked = asked_.find(QuestionOf(message));
  if (asked == asked_.end()) return;  // another answer of this number was taken just now
  if (asked->second.given_up) {
    asked_.erase(asked);
  } else {
    answers_[asked->first] = {message.peer, message.text, message.payload};
  }
}

void Worker::OnArrival(Message message) {
  TakeIn(std::move(message), &gate_, &unreadable_, &scheduler_, links_,
         [this](const Message& whole) { ActUpon(whole); });
}

void Worker::OnDamage(const Damaged& damage) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::string text = damage.Told("server", hosts_);
  lock.unlock();
  Abort(Named(text));
}

void Worker::ActUpon(const Message& message) {
  switch (message.header.type) {
    case MessageType::kResult: return OnResult(message);
    case MessageType::kScaler:
    case MessageType::kMethod: return Find(message.header.key)->codec->OnMessage(message);
    // Servers have no connection to each other: the others hear of it from the workers.
    case MessageType::kAbort: return Abort(message.text);
    case MessageType::kOrder: {
      const auto* keys = reinterpret_cast<const uint64_t*>(message.text.data());
      return SetOrder({keys, keys + message.text.size() / sizeof(uint64_t)},
                      OrderNumberOf(message));
    }
    case MessageType::kWindow: FollowWindow(message, &windows_, links_); return;
    case MessageType::kNotice: return OnNotice(message);
    case MessageType::kCredit: return OnSignOfLife(message);
    default: return OnNews(message);
  }
}

void Worker::OnSignOfLife(const Message& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t& told = refused_at_[message.peer];
  told = std::max(told, RefusedAt(message));
}

// What somebody may wait for.
void Worker::OnNews(const Message& message) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    switch (message.header.type) {
      case MessageType::kAnswer: OnAnswer(message); break;
      case MessageType::kHello:
        links_[message.peer]->SetJob(message.job);
        hosts_[message.peer] = message.text;
        doors_[message.peer] = DoorOf(message);
        break;
      case MessageType::kWelcome: OnWelcome(message); break;
      case MessageType::kMet: met_.insert(message.text); break;
      case MessageType::kFarewell:
        links_[message.peer]->SendControl(ControlMessage(MessageType::kBye));
        parted_.insert(message.peer);
        break;
      case MessageType::kSparse: demands_.push_back({message.header.key, TimesOf(message)}); break;
      case MessageType::kResume:
        resumptions_[message.peer] = Resumption::Unpack(message.text);
        break;
      default: return;
    }
  }
  changed_.notify_all();
}

// Under the lock.
void Worker::OnWelcome(const Message& message) {
  if (Shares(message) && memories_.count(message.peer) != 0) {
    transport_->Share(message.peer, memories_[message.peer]);
    if (options_.window_bytes == 0) links_[message.peer]->UseSharedWindow();
  }
  welcomed_.insert(message.peer);
}

std::vector<uint64_t> Worker::order() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return order_;
}

void Worker::SetOrder(const std::vector<uint64_t>& order, uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (number <= order_number_) return;
  order_number_ = number;
  order_ = order;
  for (size_t position = 0; position < order.size(); ++position) {
    auto found = keys_.find(order[position]);
    if (found == keys_.end()) continue;
    found->second->priority = -static_cast<int>(position);
    found->second->priority_learned = true;
  }
}

// On the thread that joins; then from the estimator, under its lock.
void Worker::AnnounceWindow(const Window& window) {
  const Message message = WindowMessage(window.Pack(), ++windows_);
  for (auto& link : links_) {
    link->SetWindow(window);
    link->SendControl(message);
  }
}

// Rank 0's order holds for all workers: a slice that they rank differently would wait at each in
// turn.
void Worker::AnnounceOrder(const std::vector<uint64_t>& order, uint64_t number) {
  if (options_.rank != 0) return;
  SetOrder(order, number);
  const std::string text(reinterpret_cast<const char*>(order.data()),
                         order.size() * sizeof(uint64_t));
  links_[0]->SendControl(OrderMessage(text, number));
}

bool Worker::Leave(double seconds) {
  if (!leaving_.exchange(true)) {
    left_since_ = Now();
    NotifyWhenDone(MessageType::kLeave, IdleNotice());
  }
  const double patience = options_.limits.patience;
  const double latest = left_since_ + Limits::Later(patience);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::chrono::duration<double> limit(std::min(seconds, std::max(0.0, latest - Now())));
    const bool over = changed_.wait_for(
        lock, limit, [this] { return !parted_.empty() || !failure_.reason().empty(); });
    if (!over && Now() < latest) return false;
  }
  RequireAnswers(parted_, 1, "answered that all workers have left", patience);
  // All operations of all workers have ended, as one server says: nobody needs the others, either.
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(kLastWords),
                    [this] { return parted_.size() == links_.size(); });
  return true;
}

void Worker::Abort(const std::string& reason) {
  ++telling_;
  if (!failure_.Set(reason)) {
    --telling_;
    return;
  }
  // The news first: an operation that ends with an error may end the process.
  const std::string told = failure_.reason();
  const Message message = ControlMessage(MessageType::kAbort, told);
  const std::set<int> greeted = Greeted();
  for (int server : greeted) Attempt([&] { links_[server]->SendControl(message); });
  // Where servers have a lane, the scheduler has one.
  if (!greeted.empty()) Attempt([&] { scheduler_.Send(message); });
  --telling_;
  EndOperations(told);
}

std::set<int> Worker::Greeted() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return RanksOf(hosts_);
}

void Worker::EndOperations(const std::string& reason) {
  for (auto& link : links_) link->Close();
  for (Key* key : Keys()) {
    std::unique_lock<std::mutex> lock(key->mutex);
    if (key->busy) Finish(key, &lock, reason);
  }
  changed_.notify_all();
}

void Worker::Hush() {
  // Whoever closes may have seen a failure before the others have been told.
  const double limit = Now() + kLastWords;
  while (telling_ > 0 && Now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (auto& link : links_) link->Hush();
  scheduler_.Close();
  watchdog_.StopWithin(limit - Now());
  if (failure_.Set("the store was closed")) EndOperations("the store was closed");
  // ps-lite ends next, and must not be sending then.
  while (HasInHand() && Now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool Worker::HasInHand() const {
  return scheduler_.has_in_hand() ||
         std::any_of(links_.begin(), links_.end(),
                     [](const std::unique_ptr<Link>& link) { return link->has_in_hand(); });
}

void Worker::Stop() {
  Hush();
  watchdog_.Stop();
  tasks_.Stop();
  sender_.Stop();
  transport_->Stop();
}

uint64_t Worker::refused() const {
  uint64_t refused = gate_.refused() + scheduler_.refused();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& server : refused_at_) refused += server.second;
  return refused;
}

uint64_t Worker::RoundsOf(uint64_t key) const {
  Key* found = Find(key);
  std::lock_guard<std::mutex> lock(found->mutex);
  return found->rounds;
}

bool Worker::WasSkipped(uint64_t key) const {
  Key* found = Find(key);
  std::lock_guard<std::mutex> lock(found->mutex);
  return found->skipped;
}

Traffic Worker::traffic() const {
  Traffic traffic;
  for (const auto& link : links_) link->AddTo(&traffic);
  return traffic;
}

Worker::Key* Worker::Find(uint64_t id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = keys_.find(id);
  if (found == keys_.end()) {
    throw std::out_of_range("key " + std::to_string(id) + " was never declared");
  }
  return found->second.get();
}

std::vector<Worker::Key*> Worker::Keys() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Key*> keys;
  for (auto& entry : keys_) keys.push_back(entry.second.get());
  return keys;
}

std::string Worker::Named(const std::string& what) const {
  return "worker " + std::to_string(options_.rank) + ": " + what;
}

}  // namespace kvstore_ext
