// A server's rounds: what workers send of a slice comes together, and goes out again (server.h).
#include <stdexcept>

#include "server/server.h"
#include "support/clock.h"
#include "support/ranks.h"
#include "transport/message_event.h"

namespace kvstore_ext {

// Compares what the workers say of a key, slice by slice as they say it.
void Server::DeclareSlice(Key* key, const Message& message) {
  const auto declaration = SliceDeclaration::Unpack(message.text);
  for (const auto& worker : key->declarations) {
    const SliceDeclaration& other = worker.second;
    if (declaration.IsOfSameKey(other)) continue;
    throw std::runtime_error("workers initialised a key differently: worker " +
                             std::to_string(worker.first) + " key " + other.name + " " +
                             other.description + ", worker " + std::to_string(message.peer) +
                             " key " + declaration.name + " " + declaration.description);
  }
  key->declarations.emplace(message.peer, declaration);
  key->literal = declaration.literal;
  key->name = declaration.name;
  key->store = declaration.store;
  const auto known = key->slices.find(message.header.slice);
  if (known != key->slices.end()) {
    const SliceDeclaration& other = known->second.reduction->declaration();
    if (other.offset == declaration.offset && other.elements == declaration.elements) return;
    throw std::runtime_error("workers cut key " + declaration.name + " differently");
  }
  // Whatever ReductionFor throws, no slice is ever without a reduction.
  SliceState slice;
  slice.elements = declaration.elements;
  slice.reduction = ReductionFor({message.header.key, message.header.slice}, declaration);
  key->slices.emplace(message.header.slice, std::move(slice));
}

std::unique_ptr<Reduction> Server::ReductionFor(const SliceName& name,
                                                const SliceDeclaration& declaration) {
  SliceContext context;
  context.name = name;
  context.declaration = declaration;
  context.workers = options_.workers;
  context.deterministic = deterministic_;
  context.send = [this, name](int worker, Message message) {
    message.header.type = MessageType::kMethod;
    message.header.key = name.first;
    message.header.slice = name.second;
    links_[worker]->Send(std::move(message));
  };
  const auto found = options_.methods.find(declaration.method_name());
  if (found != options_.methods.end()) return found->second->MakeReduction(std::move(context));
  return MakeReduction(std::move(context));
}

void Server::OnInit(const Message& message) {
  Key& key = keys_[message.header.key];
  DeclareSlice(&key, message);
  Contribute(&key, message);
}

void Server::OnPush(const Message& message) { Contribute(&KeyOf(message.header.key), message); }

void Server::Contribute(Key* key, const Message& message) {
  const int worker = message.peer;
  const SliceName name(message.header.key, message.header.slice);
  SliceState& slice = SliceOf(name);
  CheckWorks(worker, *key);
  const std::set<int>& heard = slice.reduction->heard();
  const bool first = heard.empty();
  if (slice.reduction->takes_gradients()) recorder_.Reach(message.header.round);
  Event event = EventOf(EventKind::kSummed, message);
  event.begin = recorder_.Begin();
  if (!slice.reduction->Accept(message)) return;
  recorder_.Record(event);
  if (first) slice.since = Now();
  if (message.header.round > 0) {
    ++progress_[worker].pushes;
    progress_[worker].late += Now() - slice.since;
  }
  slice.priority = message.priority;
  // At last it is that of the lowest rank which takes part, in whatever order they come.
  if (worker == *heard.begin()) slice.step = message.header.workers_step;
  if (message.header.round > 0 && !message.text.empty()) slice.settings[worker] = message.text;
  CheckNotIdle(*key, slice);
  CheckNotLeft(*key, heard, slice.round);
  CompleteIfAllHaveCome(name, key, &slice);
}

void Server::CheckWorks(int worker, const Key& key) const {
  if (!idle_.Has(worker)) return;
  throw std::runtime_error("worker " + std::to_string(worker) + " pushed key " + key.name +
                           " while it waits in store.join: all stores of a process join together");
}

// Either only rank 0 sends settings, for this server's optimizer, or all workers do, which update
// by themselves. Those that are idle have not heard what the others have changed.
void Server::CompareSettings(const Key& key, const SliceState& slice) const {
  const bool optimized = optimized_.count(key.store) != 0;
  if (slice.settings.empty() || (optimized && slice.settings.rbegin()->first == 0)) return;
  int leader = 0;
  while (!optimized && idle_.Has(leader)) ++leader;
  const auto first = slice.settings.find(leader);
  for (int worker = leader; worker < options_.workers; ++worker) {
    if (idle_.Has(worker)) continue;
    const auto other = slice.settings.find(worker);
    const bool has_none = other == slice.settings.end();
    if (optimized && (has_none || worker == leader)) continue;
    if (!optimized && first != slice.settings.end() && !has_none &&
        first->second == other->second) {
      continue;
    }
    throw std::runtime_error(
        "workers update key " + key.name + " by different optimizers: worker " +
        std::to_string(leader) + " with " +
        (first == slice.settings.end() ? "none of its own" : first->second) + ", worker " +
        std::to_string(worker) + " with " + (has_none ? "none of its own" : other->second));
  }
}

void Server::CompleteIfAllHaveCome(const SliceName& name, Key* key, SliceState* slice) {
  const size_t heard = slice->reduction->heard().size();
  if (heard > 0 && heard == idle_.working()) Complete(name, key, slice);
}

void Server::Complete(const SliceName& name, Key* key, SliceState* slice) {
  Reduction& reduction = *slice->reduction;
  for (int worker : idle_.ranks()) reduction.AddNothing(worker, idle_.factor());
  idle_.Miss();
  if (slice->round > 0) CompareSettings(*key, *slice);
  const bool optimized = optimized_.count(key->store) != 0 && reduction.takes_optimizer();
  if (slice->round == 0 || !optimized) {
    Event event;
    event.kind = EventKind::kEncoded;
    event.key = name.first;
    event.slice = static_cast<int32_t>(name.second);
    event.round = static_cast<uint32_t>(slice->round);
    event.begin = recorder_.Begin();
    reduction.Finish(slice->round);
    recorder_.Record(event);
    return Publish(name, slice);
  }
  Buffer gradient;
  if (!reduction.TakeGradient(&gradient)) return Publish(name, slice);
  QueueUpdate(name, *key, slice, std::move(gradient));
}

void Server::QueueUpdate(const SliceName& name, const Key& key, SliceState* slice,
                         Buffer gradient) {
  slice->updating = true;
  slice->summed = Now();
  Update update;
  update.key = name.first;
  update.slice = name.second;
  update.store = key.store;
  update.literal = key.literal;
  update.name = key.name;
  update.dtype = slice->reduction->declaration().dtype;
  update.elements = slice->elements;
  update.round = slice->round;
  update.step = slice->step;
  const auto settings = slice->settings.find(0);  // others' are none of this server's optimizer
  if (settings != slice->settings.end()) update.settings = settings->second;
  update.gradient = std::move(gradient);
  update.value = slice->reduction->value();
  updates_.Push(slice->priority, 0, std::move(update));
}

void Server::OnScaler(const Message& message) {
  Key& key = KeyOf(message.header.key);
  CheckWorks(message.peer, key);
  key.scalers.Take(message, key.name);
  CheckNotLeft(key, key.scalers.senders(), key.scalers.round());
  AnswerScalers(message.header.key, &key);
}

void Server::AnswerScalers(uint64_t id, Key* key) {
  const auto answer = key->scalers.Answer(id, idle_.working());
  if (!answer) return;
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (!idle_.Has(worker)) links_[worker]->SendControl(*answer);
  }
}

void Server::Publish(const SliceName& name, SliceState* slice) {
  slice->opened = Now();  // the next round; before anybody can push into it
  // Each slice begins with another worker: the same one first everywhere and always would leave the
  // last one behind, step after step, and all wait for it.
  for (int turn = 0; turn < options_.workers; ++turn) {
    const int worker = static_cast<int>((name.first + name.second + turn) % options_.workers);
    if (idle_.Has(worker)) continue;
    SendResult(worker, name, slice->round, slice->priority, slice->reduction->AnswerTo(worker));
  }
  ++slice->round;
}

// The value goes out without a copy although the optimizer will overwrite it: a worker pushes the
// next round only once it has received all of this one, and no update begins before all that take
// part have pushed; an idle one had received everything before (keys/idle.h).
void Server::SendResult(int worker, const SliceName& name, uint64_t round, int priority,
                        SliceAnswer answer) {
  Message message;
  message.priority = priority;
  message.header.type = MessageType::kResult;
  message.header.key = name.first;
  message.header.slice = name.second;
  message.header.round = round;
  message.header.encoding = answer.encoding;
  message.payload = std::move(answer.payload);
  message.peer = worker;
  recorder_.Record(EventOf(EventKind::kAnswered, message));
  links_[worker]->Send(std::move(message));
}

void Server::OnPull(const Message& message) {
  const SliceName name(message.header.key, message.header.slice);
  const SliceState& slice = SliceOf(name);
  SendResult(message.peer, name, slice.round - 1, slice.priority, slice.reduction->Value());
}

}  // namespace kvstore_ext
