#include "server.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
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

// Compares what the workers say of a key, slice by slice as they say it.
void Server::Describe(Key* key, const Message& message) {
  const auto declaration = SliceDeclaration::Unpack(message.text);
  const std::string text = declaration.name + " " + declaration.description;
  key->descriptions[message.peer] = text;
  for (const auto& other : key->descriptions) {
    if (other.second == text) continue;
    throw std::runtime_error("workers initialised a key differently: worker " +
                             std::to_string(other.first) + " key " + other.second + ", worker " +
                             std::to_string(message.peer) + " key " + text);
  }
  key->name = declaration.name;
  key->dtype = declaration.dtype;
  key->store = declaration.store;
  key->elements.emplace(message.header.slice, declaration.elements);
  auto& slice = key->slices[message.header.slice];
  if (slice.sum.heard().empty() && slice.round == 0) {
    slice.offset = declaration.offset;
    slice.codec = CodecOf(declaration, options_.workers);
    slice.sum = Aggregator(declaration.dtype, declaration.elements, options_.workers,
                           deterministic_, slice.codec);
  }
}

void Server::OnInit(const Message& message) {
  Key& key = keys_[message.header.key];
  Describe(&key, message);
  Contribute(message.header.key, &key, message.header.slice, message);
}

void Server::OnPush(const Message& message) {
  Contribute(message.header.key, &keys_.at(message.header.key), message.header.slice, message);
}

void Server::Contribute(uint64_t id, Key* key, uint32_t index, const Message& message) {
  const int worker = message.peer;
  SliceState& slice = key->slices.at(index);
  if (message.header.round != slice.round || slice.sum.heard().count(worker) != 0) {
    std::fprintf(stderr,
                 "kvstore_ext server %d: dropped a stale slice of key %s, round %llu, from "
                 "worker %d; round %llu is open\n",
                 rank_.load(), key->name.c_str(),
                 static_cast<unsigned long long>(message.header.round), worker,
                 static_cast<unsigned long long>(slice.round));
    return;
  }
  const bool encoded = message.header.encoding == Encoding::kEncoded;
  const bool non_finite = message.header.encoding == Encoding::kSkipped;
  const bool has_values = !non_finite && (message.header.round > 0 || worker == 0);
  const size_t expected = has_values ? key->elements.at(index) * SizeOf(key->dtype) : 0;
  // What is encoded its codec checks.
  if (encoded ? slice.codec == nullptr : message.payload.size != expected) {
    throw std::runtime_error("key " + key->name + ": worker " + std::to_string(worker) + " sent " +
                             std::to_string(message.payload.size) + " bytes for a slice of " +
                             std::to_string(expected));
  }
  if (slice.sum.heard().empty()) slice.since = Now();
  slice.priority = message.priority;
  if (worker == 0) slice.step = message.header.workers_step;
  if (message.header.round > 0 && !message.text.empty()) slice.settings[worker] = message.text;
  if (non_finite) {
    slice.sum.AddNonFinite(worker);
  } else if (encoded) {
    slice.sum.AddEncoded(worker, message.payload);
  } else if (has_values) {
    slice.sum.Add(worker, message.payload, message.payload_is_ours);
  } else {
    slice.sum.AddNothing(worker);
  }
  if (slice.sum.complete()) return Complete(id, key, index);
  CheckNotLeft(*key, slice.sum.heard(), slice.round);
}

// Either only rank 0 sends settings, for this server's optimizer, or all workers do, which update
// by themselves.
void Server::CompareSettings(const Key& key, const SliceState& slice) const {
  const bool optimized = optimized_.count(key.store) != 0;
  if (slice.settings.empty() || (optimized && slice.settings.rbegin()->first == 0)) return;
  const auto first = slice.settings.find(0);
  for (int worker = 0; worker < options_.workers; ++worker) {
    const auto other = slice.settings.find(worker);
    if (!optimized && first != slice.settings.end() && other != slice.settings.end() &&
        first->second == other->second) {
      continue;
    }
    throw std::runtime_error("workers update key " + key.name +
                             " by different optimizers: worker 0 with " +
                             (first == slice.settings.end() ? "none of its own" : first->second) +
                             ", worker " + std::to_string(worker) + " with " +
                             (other == slice.settings.end() ? "none of its own" : other->second));
  }
}

void Server::Complete(uint64_t id, Key* key, uint32_t index) {
  SliceState& slice = key->slices.at(index);
  if (slice.round > 0) CompareSettings(*key, slice);
  const bool optimized = slice.round > 0 && optimized_.count(key->store) != 0;
  if (slice.sum.non_finite()) {
    slice.sum.Drop();
    if (!optimized) slice.value = Buffer();
    slice.encoding = Encoding::kSkipped;
    return Publish(id, index, &slice);
  }
  slice.encoding = Encoding::kPlain;
  if (optimized) {
    slice.updating = true;
    Update update;
    update.key = id;
    update.slice = index;
    update.store = key->store;
    update.name = key->name;
    update.dtype = key->dtype;
    update.elements = key->elements.at(index);
    update.round = slice.round;
    update.step = slice.step;
    if (!slice.settings.empty()) update.settings = slice.settings.begin()->second;
    update.gradient = slice.sum.TakeWide();
    update.value = slice.value;
    updates_.Push(slice.priority, 0, std::move(update));
    return;
  }
  if (slice.sum.all_encoded()) {
    EncodeSum(id, &slice, key->dtype, key->elements.at(index));
  } else {
    slice.value = slice.sum.Take();
  }
  Publish(id, index, &slice);
}

// With error feedback a sum takes along what earlier ones have left out.
void Server::EncodeSum(uint64_t id, SliceState* slice, DType dtype, size_t elements) {
  const Codec& codec = *slice->codec;
  const float scaler = slice->sum.scaler();
  const Draws draws(codec.seed(), Draws::kServer, id, slice->earlier_rounds + slice->round);
  const Buffer sum = slice->sum.TakeWide();
  auto* values = reinterpret_cast<float*>(sum.data.get());
  for (size_t i = 0; i < slice->carried.size(); ++i) values[i] += slice->carried[i];
  slice->value = codec.EncodeSum(values, elements, scaler, draws.From(slice->offset));
  slice->encoding = Encoding::kEncoded;
  if (slice->value.data == nullptr) {
    slice->encoding = Encoding::kPlain;
    slice->carried.clear();
    slice->value = sum;
    if (dtype == DType::kFloat32) return;
    slice->value = Buffer::Allocate(elements * SizeOf(dtype));
    Narrow(dtype, slice->value.data.get(), sum.data.get(), elements);
  } else if (codec.error_feedback()) {
    std::vector<float> decoded(elements);
    codec.DecodeSum(decoded.data(), elements, slice->value);
    slice->carried.resize(elements);
    for (size_t i = 0; i < elements; ++i) slice->carried[i] = values[i] - decoded[i];
  }
}

// No key waits for another's scalers, and they overtake all data.
void Server::OnScaler(const Message& message) {
  Key& key = keys_.at(message.header.key);
  Scalers& scalers = key.scalers;
  if (message.header.round != scalers.round || scalers.heard.count(message.peer) != 0) {
    throw std::runtime_error("key " + key.name + ": worker " + std::to_string(message.peer) +
                             " sent a scaler of round " + std::to_string(message.header.round) +
                             "; round " + std::to_string(scalers.round) + " is open");
  }
  if (scalers.heard.empty()) scalers.since = Now();
  scalers.heard[message.peer] = UnpackScaler(message.text);
  if (message.peer == 0) scalers.encoding = message.header.encoding;
  if (scalers.heard.size() < links_.size()) {
    return CheckNotLeft(key, scalers.Senders(), scalers.round);
  }
  float largest = 0;
  for (const auto& scaler : scalers.heard) {
    if (!(scaler.second <= largest) && !std::isnan(largest)) largest = scaler.second;
  }
  Message answer = ControlMessage(MessageType::kScaler, PackScaler(largest));
  answer.header.key = message.header.key;
  answer.header.round = scalers.round;
  answer.header.encoding = scalers.encoding;
  for (auto& link : links_) link->SendControl(answer);
  scalers.heard.clear();
  ++scalers.round;
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

void Server::Publish(uint64_t id, uint32_t index, SliceState* slice) {
  // Each slice begins with another worker: the same one first everywhere and always would leave the
  // last one behind, step after step, and all wait for it.
  for (int turn = 0; turn < options_.workers; ++turn) {
    const int worker = static_cast<int>((id + index + turn) % options_.workers);
    SendValue(worker, id, index, slice->round, *slice);
  }
  ++slice->round;
}

// The value goes out without a copy although the optimizer will overwrite it: a worker pushes the
// next round only once it has received all of this one, and no update begins before all have
// pushed.
void Server::SendValue(int worker, uint64_t id, uint32_t index, uint64_t round,
                       const SliceState& slice) {
  Message message;
  message.priority = slice.priority;
  message.header.type = MessageType::kResult;
  message.header.key = id;
  message.header.slice = index;
  message.header.round = round;
  message.header.encoding = slice.encoding;
  message.payload = slice.value;
  links_[worker]->Send(std::move(message));
}

void Server::OnPull(const Message& message) {
  const SliceState& slice = keys_.at(message.header.key).slices.at(message.header.slice);
  SendValue(message.peer, message.header.key, message.header.slice, slice.round - 1, slice);
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
               slice.second.carried.size() * sizeof(float);
    }
  }
  return bytes;
}

void Server::EndWaits() {
  updates_.Close();
  questions_.Close();
  failure_.EndWaits();
}

void Server::Stop() {
  watchdog_.Stop();
  EndWaits();
  for (auto& link : links_) link->Close();
  transport_->Stop();
}

}  // namespace kvstore_ext
