#include "worker.h"

#include <algorithm>
#include <stdexcept>

namespace kvstore_ext {
namespace {

// Encoding is to keep up with a fast link, and to leave processors to the computation.
int Encoders() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4); }

}  // namespace

Worker::Worker(const WorkerOptions& options, std::shared_ptr<Transport> transport)
    : options_(options),
      transport_(std::move(transport)),
      learner_([this](const std::vector<uint64_t>& order) { AnnounceOrder(order); }) {
  std::shared_ptr<WindowEstimator> estimator;
  if (options_.rank == 0 && options_.window_bytes == 0) {
    estimator =
        std::make_shared<WindowEstimator>(options_.slice_bytes, options_.servers,
                                          [this](const Window& advice) { AnnounceWindow(advice); });
  }
  for (int server = 0; server < options_.servers; ++server) {
    links_.push_back(
        std::make_unique<Link>(transport_, server, estimator, [this](const Message& message) {
          const Header& header = message.header;
          trace_.Record("send", header.key, header.slice, header.round, message.priority);
          if (header.type == MessageType::kPush) statistics_.Left(header.key, header.slice);
        }));
  }
  transport_->Start([this](Message message) {
    try {
      OnMessage(std::move(message));
    } catch (const std::exception& error) {
      Abort("worker " + std::to_string(options_.rank) + ": " + error.what());
    }
  });
  for (int i = 0; i < Encoders(); ++i) encoders_.emplace_back([this] { Encode(); });
  watchdog_.Start(std::min(1.0, options_.timeout / 10), [this] { CheckDeadlines(); });
}

Worker::~Worker() { Stop(); }

std::vector<int> Worker::AwaitServers(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return greeted_.size() == links_.size(); });
  const std::set<int> missing = Missing(greeted_, options_.servers);
  return {missing.begin(), missing.end()};
}

void Worker::Join() {
  Message join = ControlMessage(MessageType::kJoin, options_.configuration);
  join.header.slice = options_.deterministic ? 1 : 0;
  for (auto& link : links_) link->SendControl(join);
  AwaitAll(welcomed_, "answered that all workers have opened the same store");
  joined_ = true;
  if (options_.rank != 0) return;
  // Before the first data, whose results are to find it, and while nothing disturbs the measuring.
  AnnounceWindow(WindowEstimator::Initial(options_.slice_bytes, options_.window_bytes));
  for (auto& link : links_) link->Measure();
}

void Worker::AwaitAll(const std::set<int>& servers, const char* what) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(options_.timeout),
                    [&] { return servers.size() == links_.size() || !failure_.reason().empty(); });
  if (servers.size() < links_.size() && failure_.reason().empty()) {
    const std::set<int> missing = Missing(servers, options_.servers);
    lock.unlock();
    Abort("worker " + std::to_string(options_.rank) + ": within " + Seconds(options_.timeout) +
          " server " + Ranks(missing) + " has not " + what);
  }
  if (!failure_.reason().empty()) throw std::runtime_error(failure_.reason());
}

void Worker::Declare(uint64_t id, const SliceDeclaration& declaration, bool raises) {
  auto key = std::make_unique<Key>();
  key->declaration = declaration;
  key->raises = raises;
  double element_bytes = SizeOf(declaration.dtype);
  size_t alignment = 1;
  if (!declaration.compression.empty()) {
    key->codec = MakeCodec(id, declaration);
    element_bytes = key->codec->bytes_per_element();
    alignment = key->codec->alignment();
  }
  key->slices = SliceKey(id, declaration.elements, element_bytes, options_.slice_bytes,
                         options_.servers, alignment);
  if (key->codec != nullptr) key->codec->Cut(key->slices);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!keys_.emplace(id, std::move(key)).second) {
    throw std::invalid_argument("key " + declaration.name + " is declared already");
  }
}

std::unique_ptr<KeyCodec> Worker::MakeCodec(uint64_t id, const SliceDeclaration& declaration) {
  if (!SlimOptions::Are(declaration)) {
    return std::make_unique<GradientCodec>(id, declaration, options_.rank, options_.workers);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  auto& model = slim_models_[declaration.store];
  if (model == nullptr) {
    model = std::make_shared<SlimModel>(SlimOptions::Parse(declaration), options_.rank);
  }
  return std::make_unique<SlimKey>(id, declaration, options_.workers, model);
}

std::shared_ptr<SlimModel> Worker::SlimModelOf(int32_t store) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return slim_models_.at(store);
}

uint64_t Worker::Ask(int server, const std::string& text, const Buffer& payload) {
  Message message;
  message.header.type = MessageType::kAsk;
  message.text = text;
  message.payload = payload;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    message.header.key = ++questions_;
  }
  const uint64_t question = message.header.key;
  links_.at(server)->Send(std::move(message));
  return question;
}

Answer Worker::AwaitAnswer(uint64_t question) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(options_.timeout),
                    [&] { return answers_.count(question) != 0 || !failure_.reason().empty(); });
  if (!failure_.reason().empty()) throw std::runtime_error(failure_.reason());
  auto found = answers_.find(question);
  if (found == answers_.end()) {
    throw std::runtime_error("worker " + std::to_string(options_.rank) + ": within " +
                             Seconds(options_.timeout) + " a server has not answered a question");
  }
  Answer answer = std::move(found->second);
  answers_.erase(found);
  return answer;
}

void Worker::OnMessage(Message message) {
  Link& link = *links_[message.peer];
  if (link.Receive(&message)) ActUpon(message);
  link.Acknowledge();
}

void Worker::ActUpon(const Message& message) {
  switch (message.header.type) {
    case MessageType::kResult: OnResult(message); break;
    case MessageType::kScaler: OnScaler(message); break;
    case MessageType::kCore: OnCore(message); break;
    // Servers have no connection to each other: the others hear of it from the workers.
    case MessageType::kAbort: Abort(message.text); break;
    case MessageType::kOrder: {
      const auto* keys = reinterpret_cast<const uint64_t*>(message.text.data());
      SetOrder({keys, keys + message.text.size() / sizeof(uint64_t)});
      break;
    }
    case MessageType::kWindow: FollowWindow(message, &windows_, links_); break;
    case MessageType::kAnswer: {
      std::lock_guard<std::mutex> lock(mutex_);
      answers_[message.header.key] = {message.text, message.payload};
      changed_.notify_all();
      break;
    }
    case MessageType::kHello:
    case MessageType::kWelcome:
    case MessageType::kFarewell: {
      std::lock_guard<std::mutex> lock(mutex_);
      auto& servers = message.header.type == MessageType::kHello     ? greeted_
                      : message.header.type == MessageType::kWelcome ? welcomed_
                                                                     : parted_;
      servers.insert(message.peer);
      changed_.notify_all();
      break;
    }
    default: break;
  }
}

std::vector<uint64_t> Worker::order() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return order_;
}

void Worker::SetOrder(const std::vector<uint64_t>& order) {
  std::lock_guard<std::mutex> lock(mutex_);
  order_ = order;
  for (size_t position = 0; position < order.size(); ++position) {
    auto found = keys_.find(order[position]);
    if (found == keys_.end()) continue;
    found->second->priority = -static_cast<int>(position);
    found->second->priority_learned = true;
  }
}

// On the thread that joins; then on the receiving one, from the estimator, under its lock.
void Worker::AnnounceWindow(const Window& window) {
  Message message = ControlMessage(MessageType::kWindow, window.Pack());
  message.header.round = ++windows_;
  for (auto& link : links_) {
    link->SetWindow(window);
    link->SendControl(message);
  }
}

// Rank 0's order holds for all workers: a slice that they rank differently would wait at each in
// turn.
void Worker::AnnounceOrder(const std::vector<uint64_t>& order) {
  if (options_.rank != 0) return;
  SetOrder(order);
  const std::string text(reinterpret_cast<const char*>(order.data()),
                         order.size() * sizeof(uint64_t));
  links_[0]->SendControl(ControlMessage(MessageType::kOrder, text));
}

void Worker::Leave() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // Every operation has a deadline of its own, so this wait ends.
    changed_.wait(lock, [this] { return open_operations_ == 0; });
  }
  if (!failure_.reason().empty()) throw std::runtime_error(failure_.reason());
  for (auto& link : links_) link->SendControl(ControlMessage(MessageType::kLeave));
  AwaitAll(parted_, "answered that all workers have left");
}

void Worker::Abort(const std::string& reason) {
  if (!failure_.Set(reason)) return;
  // The news first: an operation that ends with an error may end the process.
  Message message = ControlMessage(MessageType::kAbort, reason);
  for (auto& link : links_) link->SendControl(message);
  message.peer = kScheduler;
  transport_->Send(message);
  EndOperations(reason);
}

void Worker::EndOperations(const std::string& reason) {
  for (auto& link : links_) link->Close();
  for (Key* key : Keys()) {
    std::unique_lock<std::mutex> lock(key->mutex);
    if (key->busy) Finish(key, &lock, reason);
  }
  changed_.notify_all();
}

void Worker::CheckDeadlines() {
  if (!failure_.reason().empty()) return;
  if (joined_) {
    std::set<int> silent;
    for (int server = 0; server < options_.servers; ++server) {
      links_[server]->SendControl(ControlMessage(MessageType::kCredit));
      // A moment later than an operation's limit, which says more.
      if (Now() - links_[server]->last_heard() > options_.timeout * 1.1) silent.insert(server);
    }
    if (!silent.empty()) {
      return Abort("worker " + std::to_string(options_.rank) + ": server " + Ranks(silent) +
                   " has not been heard of for " + Seconds(options_.timeout));
    }
  }
  for (Key* key : Keys()) {
    const std::string overdue = Overdue(key);
    if (!overdue.empty()) return Abort(overdue);
  }
}

// Says for whom a key's operation has waited too long; empty if it has not.
std::string Worker::Overdue(Key* key) {
  std::lock_guard<std::mutex> lock(key->mutex);
  if (!key->busy) return "";
  std::set<int> silent;
  double last_heard = Now();
  for (const Slice& slice : key->slices) {
    if (key->arrived[slice.index] || (key->shares && slice.index > 0)) continue;
    silent.insert(slice.server);
    last_heard = std::min(last_heard, links_[slice.server]->last_heard());
  }
  // A server that is gone is named before the living ones say, at nine tenths of the time, that
  // they wait for the workers which wait for it.
  const double limit = options_.timeout * (Now() - last_heard > options_.timeout * 0.8 ? 0.8 : 1.0);
  if (Now() - key->since < limit) return "";
  return "worker " + std::to_string(options_.rank) + ": no answer from server " + Ranks(silent) +
         " for key " + key->declaration.name + ", round " + std::to_string(key->rounds - 1) +
         ", within " + Seconds(options_.timeout);
}

void Worker::Hush() {
  watchdog_.Stop();
  if (failure_.Set("the store was closed")) EndOperations("the store was closed");
  for (auto& link : links_) link->Hush();
}

void Worker::Stop() {
  Hush();
  encodings_.Close();
  for (std::thread& encoder : encoders_) {
    if (encoder.joinable()) encoder.join();
  }
  transport_->Stop();
}

uint64_t Worker::RoundsOf(uint64_t key) {
  Key* found = Find(key);
  std::lock_guard<std::mutex> lock(found->mutex);
  return found->rounds;
}

Traffic Worker::traffic() const {
  Traffic traffic;
  for (const auto& link : links_) link->AddTo(&traffic);
  return traffic;
}

Worker::Key* Worker::Find(uint64_t id) {
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

}  // namespace kvstore_ext
