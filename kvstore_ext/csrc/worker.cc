#include "worker.h"

#include <algorithm>
#include <cmath>
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
  encoder_ = std::thread([this] { EncodeInTurn(); });
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
    key->codec = std::make_unique<KeyCodec>(id, declaration, options_.rank, options_.workers);
    element_bytes = key->codec->codec().bytes_per_element();
    alignment = key->codec->codec().alignment();
  }
  key->slices = SliceKey(id, declaration.elements, element_bytes, options_.slice_bytes,
                         options_.servers, alignment);
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
  Round round{key,
              current.key,
              key->rounds - 1,
              current.contributes,
              current.input,
              current.step,
              current.settings,
              Encoding::kPlain,
              0};
  const bool plain = current.plain;
  const bool compressed = round.contributes && round.number > 0 && key->codec != nullptr;
  key->shares = compressed && key->codec->codec().shares_scaler();
  lock.unlock();
  if (compressed && (key->shares || !plain)) {
    Compress(std::move(round), plain);
  } else {
    SendRound(round);
  }
}

// Looks at the whole gradient, on the engine's thread. Encoding then waits for its turn, and for
// the other workers where they share scalers: no key waits for another's.
void Worker::Compress(Round round, bool plain) {
  const double since = Now();
  round.scaler = round.key->codec->Prepare(round.input, round.number);
  statistics_.Count([&](Totals* totals) { totals->encode += Now() - since; });
  const bool finite = !std::isnan(round.scaler);
  if (!finite && round.key->raises) {
    return Abort("worker " + std::to_string(options_.rank) + ": the gradient of key " +
                 round.key->declaration.name + ", round " + std::to_string(round.number) +
                 ", has values that are not finite");
  }
  round.encoding = finite ? Encoding::kEncoded : Encoding::kSkipped;
  if (!round.key->shares) return encodings_.Push(round.key->priority, 0, std::move(round));
  Message message = ControlMessage(MessageType::kScaler, PackScaler(round.scaler));
  message.header.key = round.id;
  message.header.round = round.number;
  message.header.encoding = plain ? Encoding::kPlain : Encoding::kEncoded;
  Link& link = *links_[round.key->slices.front().server];
  {
    std::lock_guard<std::mutex> lock(round.key->mutex);
    round.key->sharing = std::move(round);
  }
  link.SendControl(std::move(message));
}

void Worker::OnScaler(const Message& message) {
  Key* key = Find(message.header.key);
  Round round;
  {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (!key->busy || !key->shares || message.header.round + 1 != key->rounds) return;
    key->shares = false;
    round = std::move(key->sharing);
  }
  round.scaler = UnpackScaler(message.text);
  round.encoding = std::isnan(round.scaler) ? Encoding::kSkipped : message.header.encoding;
  encodings_.Push(key->priority, 0, std::move(round));
}

void Worker::EncodeInTurn() {
  Round round;
  while (encodings_.Pop(&round)) SendRound(round);
}

void Worker::SendRound(const Round& round) {
  // A result of the last slice may end the operation at once, so the round is looked at no more
  // after it; what was begun stays readable should the job fail.
  try {
    for (const Slice& slice : round.key->slices) SendSlice(round, slice);
  } catch (const std::exception& error) {
    // What was sent cannot be taken back, so nobody can go on.
    Abort("worker " + std::to_string(options_.rank) + ": key " + round.key->declaration.name +
          " cannot be sent: " + error.what());
  }
}

void Worker::SendSlice(const Round& round, const Slice& slice) {
  Message message;
  message.priority = round.key->priority;
  message.header.key = round.id;
  message.header.slice = slice.index;
  message.header.round = round.number;
  message.header.workers_step = round.step;
  if (!round.contributes) {
    message.header.type = MessageType::kPull;
    links_[slice.server]->SendControl(std::move(message));
    return;
  }
  if (round.number == 0) {
    SliceDeclaration declaration = round.key->declaration;
    declaration.offset = slice.offset;
    declaration.elements = slice.length;
    message.header.type = MessageType::kInit;
    message.text = declaration.Pack();
  } else {
    message.header.type = MessageType::kPush;
    message.header.encoding = round.encoding;
    message.text = round.settings;
  }
  message.payload = PayloadOf(round, slice);
  if (round.number > 0) statistics_.Queued(round.id, slice.index);
  links_[slice.server]->Send(std::move(message));
}

Buffer Worker::PayloadOf(const Round& round, const Slice& slice) {
  if (round.number == 0 && options_.rank != 0) return Buffer();
  if (round.encoding == Encoding::kSkipped) return Buffer();
  const size_t element = SizeOf(round.key->declaration.dtype);
  const double since = Now();
  const Buffer payload =
      round.encoding == Encoding::kEncoded
          ? round.key->codec->Encode(slice, round.number, round.scaler)
          : Buffer::Borrow(const_cast<char*>(round.input) + slice.offset * element,
                           slice.length * element);
  if (round.number > 0) {
    statistics_.Count([&](Totals* totals) {
      totals->encode += Now() - since;
      totals->plain_bytes += slice.length * element;
      totals->encoded_bytes += payload.size;
    });
  }
  return payload;
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
    if (!failure_.reason().empty()) return;  // which has ended the operation
    std::fprintf(stderr, "kvstore_ext worker %d: dropped a stale result of key %s, round %llu\n",
                 options_.rank, key->declaration.name.c_str(),
                 static_cast<unsigned long long>(header.round));
    return;
  }
  const Slice& slice = key->slices[header.slice];
  const Result result{message.payload, header.encoding};
  statistics_.Arrived(header.key, header.slice);
  if (key->operation.output != nullptr) {
    Write(*key, slice, result, key->operation.output);
  } else {
    key->kept.resize(key->slices.size());
    key->kept[slice.index] = result;
  }
  if (header.slice == 0 && header.encoding == Encoding::kSkipped) {
    statistics_.Count([](Totals* totals) { ++totals->non_finite; });
  }
  trace_.Record("result", header.key, header.slice, header.round, message.priority);
  key->arrived[slice.index] = true;
  if (--key->missing == 0) Finish(key, &lock, "");
}

void Worker::Write(const Key& key, const Slice& slice, const Result& result, char* output) {
  const double since = Now();
  const size_t element = SizeOf(key.declaration.dtype);
  const size_t bytes = slice.length * element;
  char* to = output + slice.offset * element;
  if (result.encoding == Encoding::kEncoded && key.codec != nullptr) {
    key.codec->Decode(slice, result.payload, to);
  } else if (result.encoding == Encoding::kSkipped && result.payload.size == 0) {
    std::memset(to, 0, bytes);
  } else if (result.payload.size != bytes) {
    throw std::runtime_error("key " + key.declaration.name + ": a server sent " +
                             std::to_string(result.payload.size) + " bytes for a slice of " +
                             std::to_string(bytes));
  } else {
    std::memcpy(to, result.payload.data.get(), bytes);
  }
  statistics_.Count([&](Totals* totals) { totals->decode += Now() - since; });
}

void Worker::TakeKept(Key* key) {
  for (const Slice& slice : key->slices) {
    Write(*key, slice, key->kept[slice.index], key->operation.output);
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
  if (encoder_.joinable()) encoder_.join();
  transport_->Stop();
}

KeyCodec& Worker::CodecOf(uint64_t key) {
  Key* found = Find(key);
  if (found->codec == nullptr) {
    throw std::out_of_range("key " + found->declaration.name + " is not compressed");
  }
  return *found->codec;
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
