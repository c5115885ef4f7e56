// A server's cores under Slim-DP: how they are selected, and what happens where a worker has
// another one (server.h).
#include <stdexcept>

#include "server.h"

namespace kvstore_ext {

CoreSelection Server::AwaitSelection(int32_t store, uint64_t round, size_t slices) {
  std::map<CoreSelection::SliceName, std::shared_ptr<SlimSlice::Snapshot>> snapshots;
  std::string missing;
  const auto all_there = [&] {
    if (ending_ || !failure_.reason().empty()) return true;
    for (auto& key : keys_) {
      if (key.second.store != store) continue;
      for (auto& slice : key.second.slices) {
        if (slice.second.slim == nullptr) continue;
        auto snapshot = slice.second.slim->TakeSnapshot(round);
        if (snapshot != nullptr) snapshots[{key.first, slice.first}] = std::move(snapshot);
        if (snapshots.count({key.first, slice.first}) == 0) missing = key.second.name;
      }
    }
    return snapshots.size() >= slices;
  };
  std::unique_lock<std::mutex> lock(mutex_);
  if (!completed_.wait_for(lock, std::chrono::duration<double>(options_.timeout * 0.9),
                           all_there)) {
    throw std::runtime_error("a core cannot be selected: round " + std::to_string(round) +
                             " of key " + (missing.empty() ? "?" : missing) +
                             " is not complete within " + Seconds(options_.timeout) +
                             "; keys that are never pushed belong into the option exclude");
  }
  if (ending_) throw std::runtime_error("the server ends");
  if (!failure_.reason().empty()) throw std::runtime_error(failure_.reason());
  return CoreSelection(std::move(snapshots));
}

void Server::SetCores(uint64_t selection, std::map<CoreSelection::SliceName, Subset> cores) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& entry : cores) {
    SlimSlice& slice = *keys_.at(entry.first.first).slices.at(entry.first.second).slim;
    slice.SetCore(selection, std::move(entry.second));
    const Buffer members = slice.CoreOf(selection)->members.ToBuffer();
    for (int worker = 0; worker < options_.workers; ++worker) {
      SendCore(worker, entry.first, selection, Encoding::kPlain, members);
    }
  }
}

void Server::SendCore(int worker, const CoreSelection::SliceName& name, uint64_t selection,
                      Encoding encoding, const Buffer& members) {
  Message message;
  message.header.type = MessageType::kCore;
  message.header.encoding = encoding;
  message.header.key = name.first;
  message.header.slice = name.second;
  message.header.round = selection;
  message.payload = members;
  links_[worker]->Send(std::move(message));
}

// Whether a push has been made with the core that is here; otherwise tells the worker, or asks it.
bool Server::HasCoreOf(const Message& message, const SliceState& slice) {
  const SlimSlice::Fit fit =
      slice.slim->Accept(message.peer, slice.sum.heard().empty(), message.payload);
  if (fit == SlimSlice::Fit::kFits) return true;
  const uint64_t selection = SlimSlice::SelectionOf(message.payload);
  const auto core = slice.slim->CoreOf(selection);
  SendCore(message.peer, {message.header.key, message.header.slice}, selection, Encoding::kSkipped,
           core == nullptr ? Buffer() : core->members.ToBuffer());
  return false;
}

// The answer of a worker that was asked; another's may have come before.
void Server::OnCore(const Message& message) {
  Key& key = keys_.at(message.header.key);
  SlimSlice& slice = *key.slices.at(message.header.slice).slim;
  if (slice.CoreOf(message.header.round) != nullptr) return;
  slice.SetCore(message.header.round, Subset(slice.elements(), message.payload));
}

void Server::ResumeSlim(uint64_t key, uint32_t index, const Buffer& parameters,
                        std::map<uint64_t, Subset> cores) {
  std::lock_guard<std::mutex> lock(mutex_);
  SliceState& slice = keys_.at(key).slices.at(index);
  if (slice.slim == nullptr) throw std::invalid_argument("key " + keys_.at(key).name + " is whole");
  slice.slim->Resume(parameters, std::move(cores));
}

}  // namespace kvstore_ext
