// A server's rounds: what workers send of a slice comes together, and goes out again (server.h).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "server.h"

namespace kvstore_ext {

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
    if (SlimOptions::Are(declaration)) {
      slice.slim = std::make_shared<SlimSlice>(declaration, message.header.key, options_.workers);
      slice.codec = slice.slim;
    } else {
      slice.codec = CodecOf(declaration, options_.workers);
    }
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
  CheckRoot(*key, slice, message);
  const int root = message.header.root;
  const bool has_values =
      root > 0 ? worker == root - 1 : !non_finite && (message.header.round > 0 || worker == 0);
  const size_t expected = has_values ? key->elements.at(index) * SizeOf(key->dtype) : 0;
  // What is encoded its codec checks.
  if (encoded ? slice.codec == nullptr : message.payload.size != expected) {
    throw std::runtime_error("key " + key->name + ": worker " + std::to_string(worker) + " sent " +
                             std::to_string(message.payload.size) + " bytes for a slice of " +
                             std::to_string(expected));
  }
  if (encoded && slice.slim != nullptr && !HasCoreOf(message, slice)) return;
  if (slice.sum.heard().empty()) slice.since = Now();
  slice.root = root;
  slice.priority = message.priority;
  if (worker == 0) slice.step = message.header.workers_step;
  if (message.header.round > 0 && !message.text.empty()) slice.settings[worker] = message.text;
  Add(message, has_values, &slice);
  if (slice.sum.complete()) return Complete(id, key, index);
  CheckNotLeft(*key, slice.sum.heard(), slice.round);
}

void Server::Add(const Message& message, bool has_values, SliceState* slice) {
  const int worker = message.peer;
  if (slice->root > 0) {
    if (has_values) slice->value = message.payload;
    slice->sum.AddNothing(worker);
  } else if (message.header.encoding == Encoding::kSkipped) {
    slice->sum.AddNonFinite(worker);
  } else if (message.header.encoding == Encoding::kEncoded) {
    slice->sum.AddEncoded(worker, message.payload);
  } else if (has_values) {
    slice->sum.Add(worker, message.payload, message.payload_is_ours);
  } else {
    slice->sum.AddNothing(worker);
  }
}

// All have to take part in the same: a sum, or one worker's array for all.
void Server::CheckRoot(const Key& key, const SliceState& slice, const Message& message) const {
  if (slice.sum.heard().empty() || slice.root == message.header.root) return;
  const auto what = [](int root) {
    return root == 0 ? std::string("the sum") : "the array of worker " + std::to_string(root - 1);
  };
  throw std::runtime_error("key " + key.name + ", round " + std::to_string(slice.round) +
                           ": worker " + Ranks(slice.sum.heard()) + " asked for " +
                           what(slice.root) + ", worker " + std::to_string(message.peer) + " for " +
                           what(message.header.root));
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
  if (slice.root > 0) {
    slice.sum.Drop();
    slice.encoding = Encoding::kPlain;
    return Publish(id, index, &slice);
  }
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
  if (slice.round > 0 && slice.slim != nullptr) {
    slice.slim->Apply(slice.sum.TakeWide());
  } else if (slice.round > 0 && slice.codec != nullptr) {
    EncodeSum(id, &slice, key->dtype, key->elements.at(index));
  } else {
    slice.value = slice.sum.Take();
    if (slice.slim != nullptr) slice.slim->SetValue(slice.value);
  }
  Publish(id, index, &slice);
}

// With error feedback a sum takes along what earlier ones have left out.
void Server::EncodeSum(uint64_t id, SliceState* slice, DType dtype, size_t elements) {
  const Codec& codec = *slice->codec;
  const bool all_encoded = slice->sum.all_encoded();
  const float scaler = slice->sum.scaler();
  const Draws draws(codec.seed(), Draws::kServer, id, slice->earlier_rounds + slice->round);
  const Buffer sum = slice->sum.TakeWide();
  auto* values = reinterpret_cast<float*>(sum.data.get());
  for (size_t i = 0; i < slice->carried.size(); ++i) values[i] += slice->carried[i];
  slice->carried.clear();
  slice->value = Buffer();
  // Finite gradients may have a sum that is not, which says so as it does without compression.
  if (all_encoded && !std::isnan(codec.Codec::Scaler(values, elements))) {
    slice->value = codec.EncodeSum(values, elements, scaler, draws.From(slice->offset));
  }
  if (slice->value.data == nullptr) {
    slice->value = sum;
    if (dtype == DType::kFloat32) return;
    slice->value = Buffer::Allocate(elements * SizeOf(dtype));
    Narrow(dtype, slice->value.data.get(), sum.data.get(), elements);
    return;
  }
  slice->encoding = Encoding::kEncoded;
  if (!codec.error_feedback() || !codec.sums_lose()) return;
  std::vector<float> decoded(elements);
  codec.DecodeSum(decoded.data(), elements, slice->value);
  slice->carried.resize(elements);
  for (size_t i = 0; i < elements; ++i) slice->carried[i] = values[i] - decoded[i];
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

void Server::Publish(uint64_t id, uint32_t index, SliceState* slice) {
  // Each slice begins with another worker: the same one first everywhere and always would leave the
  // last one behind, step after step, and all wait for it.
  for (int turn = 0; turn < options_.workers; ++turn) {
    const int worker = static_cast<int>((id + index + turn) % options_.workers);
    if (slice->slim != nullptr && slice->round > 0) {
      SendValue(worker, id, index, slice->round, *slice, Encoding::kEncoded,
                slice->slim->AnswerTo(worker));
    } else {
      SendValue(worker, id, index, slice->round, *slice, slice->encoding, slice->value);
    }
  }
  ++slice->round;
  if (slice->slim != nullptr) completed_.notify_all();
}

// The value goes out without a copy although the optimizer will overwrite it: a worker pushes the
// next round only once it has received all of this one, and no update begins before all have
// pushed.
void Server::SendValue(int worker, uint64_t id, uint32_t index, uint64_t round,
                       const SliceState& slice, Encoding encoding, const Buffer& value) {
  Message message;
  message.priority = slice.priority;
  message.header.type = MessageType::kResult;
  message.header.key = id;
  message.header.slice = index;
  message.header.round = round;
  message.header.encoding = encoding;
  message.header.root = static_cast<uint16_t>(slice.root);
  if (worker != slice.root - 1) message.payload = value;  // which has it
  links_[worker]->Send(std::move(message));
}

void Server::OnPull(const Message& message) {
  const SliceState& slice = keys_.at(message.header.key).slices.at(message.header.slice);
  SendValue(message.peer, message.header.key, message.header.slice, slice.round - 1, slice,
            slice.encoding, slice.value);
}

}  // namespace kvstore_ext
