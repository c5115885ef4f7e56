#include "worker.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace kvstore_ext {

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
        }));
  }
  transport_->Start([this](Message message) {
    try {
      OnMessage(std::move(message));
    } catch (const std::exception& error) {
      Abort("worker " + std::to_string(options_.rank) + ": " + error.what());
    }
  });
  watchdog_.Start(std::min(1.0, options_.timeout / 10), [this] { CheckDeadlines(); });
}

Worker::~Worker() { Stop(); }

std::vector<int> Worker::AwaitServers(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return greeted_.size() == links_.size(); });
  std::vector<int> missing;
  for (int server = 0; server < options_.servers; ++server) {
    if (greeted_.count(server) == 0) missing.push_back(server);
  }
  return missing;
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
    std::set<int> missing;
    for (int server = 0; server < options_.servers; ++server) {
      if (servers.count(server) == 0) missing.insert(server);
    }
    lock.unlock();
    Abort("worker " + std::to_string(options_.rank) + ": within " + Seconds(options_.timeout) +
          " server " + Ranks(missing) + " has not " + what);
  }
  if (!failure_.reason().empty()) throw std::runtime_error(failure_.reason());
}

void Worker::Declare(uint64_t id, const SliceDeclaration& declaration) {
  auto key = std::make_unique<Key>();
  key->declaration = declaration;
  const DType dtype = declaration.dtype;
  key->slices =
      SliceKey(id, declaration.elements, SizeOf(dtype), options_.slice_bytes, options_.servers);
  if (!declaration.compression.empty()) {
    for (const Slice& slice : key->slices) {
      key->codecs.push_back(MakeCodec(declaration.compression, dtype, slice.length));
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!keys_.emplace(id, std::move(key)).second) {
    throw std::invalid_argument("key " + declaration.name + " is declared already");
  }
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

void Worker::Start(Operation operation) {
  Key* key = Find(operation.key);
  std::unique_lock<std::mutex> lock(key->mutex);
  {
    std::lock_guard<std::mutex> all(mutex_);
    ++open_operations_;
  }
  key->busy = true;
  key->operation = std::move(operation);
  key->since = Now();
  if (!failure_.reason().empty()) return Finish(key, &lock, failure_.reason());
  const Operation& current = key->operation;
  if (!current.contributes && !key->kept.empty()) {
    TakeKept(key);
    return Finish(key, &lock, "");
  }
  if (current.contributes) {
    if (key->rounds > 0) {
      learner_.Ready(current.key, key->rounds, current.pushed, key->since, current.priority);
    }
    ++key->rounds;
    key->kept.clear();
  }
  {
    std::lock_guard<std::mutex> all(mutex_);  // SetOrder's
    if (!key->priority_learned) key->priority = current.priority;
  }
  key->arrived.assign(key->slices.size(), false);
  key->missing = key->slices.size();
  trace_.Record("ready", current.key, 0, key->rounds - 1, key->priority);
  // Results of the first slices may finish the operation while the last are being sent; they wait
  // for the key's mutex.
  try {
    for (const Slice& slice : key->slices) SendSlice(key, slice, current);
  } catch (const std::exception& error) {
    // What was sent cannot be taken back, so nobody can go on.
    const std::string reason = "worker " + std::to_string(options_.rank) + ": key " +
                               key->declaration.name + " cannot be sent: " + error.what();
    lock.unlock();
    Abort(reason);
  }
}

void Worker::SendSlice(Key* key, const Slice& slice, const Operation& operation) {
  Message message;
  message.priority = key->priority;
  message.header.key = operation.key;
  message.header.slice = slice.index;
  message.header.round = key->rounds - 1;
  message.header.workers_step = operation.step;
  if (!operation.contributes) {
    message.header.type = MessageType::kPull;
    links_[slice.server]->SendControl(std::move(message));
    return;
  }
  const size_t element = SizeOf(key->declaration.dtype);
  const bool first = message.header.round == 0;
  message.header.type = first ? MessageType::kInit : MessageType::kPush;
  if (first) {
    SliceDeclaration declaration = key->declaration;
    declaration.elements = slice.length;
    message.text = declaration.Pack();
  }
  const char* values = operation.input + slice.offset * element;
  if (!first && !key->codecs.empty()) {
    message.payload = key->codecs[slice.index]->Encode(values);
  } else if (!first || options_.rank == 0) {
    message.payload = Buffer::Borrow(const_cast<char*>(values), slice.length * element);
  }
  if (!first) message.text = operation.settings;
  links_[slice.server]->Send(std::move(message));
}

void Worker::OnMessage(Message message) {
  Link& link = *links_[message.peer];
  if (link.Receive(&message)) ActUpon(message);
  link.Acknowledge();
}

void Worker::ActUpon(const Message& message) {
  switch (message.header.type) {
    case MessageType::kResult: OnResult(message); break;
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

void Worker::OnResult(const Message& message) {
  const Header& header = message.header;
  Key* key = Find(header.key);
  std::unique_lock<std::mutex> lock(key->mutex);
  if (!key->busy || header.round + 1 != key->rounds || key->arrived[header.slice]) {
    std::fprintf(stderr, "kvstore_ext worker %d: dropped a stale result of key %s, round %llu\n",
                 options_.rank, key->declaration.name.c_str(),
                 static_cast<unsigned long long>(header.round));
    return;
  }
  const Slice& slice = key->slices[header.slice];
  const size_t element = SizeOf(key->declaration.dtype);
  if (message.payload.size != slice.length * element) {
    lock.unlock();
    return Abort("key " + key->declaration.name + ": server " + std::to_string(message.peer) +
                 " sent " + std::to_string(message.payload.size) + " bytes for a slice of " +
                 std::to_string(slice.length * element));
  }
  if (key->operation.output != nullptr) {
    std::memcpy(key->operation.output + slice.offset * element, message.payload.data.get(),
                message.payload.size);
  } else {
    key->kept.resize(key->slices.size());
    key->kept[slice.index] = message.payload;
  }
  trace_.Record("result", header.key, header.slice, header.round, message.priority);
  key->arrived[slice.index] = true;
  if (--key->missing == 0) Finish(key, &lock, "");
}

void Worker::TakeKept(Key* key) {
  const size_t element = SizeOf(key->declaration.dtype);
  for (const Slice& slice : key->slices) {
    std::memcpy(key->operation.output + slice.offset * element, key->kept[slice.index].data.get(),
                slice.length * element);
  }
  key->kept.clear();
}

// Ends the key's operation; unlocks, since what waits for the end may start the next one at once.
void Worker::Finish(Key* key, std::unique_lock<std::mutex>* lock, const std::string& error) {
  auto done = std::move(key->operation.done);
  trace_.Record("done", key->operation.key, 0, key->rounds - 1, key->priority);
  key->busy = false;
  key->operation = Operation();
  lock->unlock();
  done(error);
  {
    std::lock_guard<std::mutex> all(mutex_);
    --open_operations_;
  }
  changed_.notify_all();
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
    if (key->arrived[slice.index]) continue;
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
  transport_->Stop();
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
