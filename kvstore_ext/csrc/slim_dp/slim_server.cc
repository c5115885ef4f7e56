#include "slim_dp/slim_server.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "support/clock.h"
#include "support/printable.h"
#include "support/say.h"

namespace kvstore_ext {
std::unique_ptr<Reduction> SlimServer::MakeReduction(SliceContext context) {
  const SliceName name = context.name;
  auto slice = std::make_unique<SlimSlice>(std::move(context), [this] {
    {
      std::lock_guard<std::mutex> lock(mutex_);
    }
    changed_.notify_all();
  });
  std::lock_guard<std::mutex> lock(mutex_);
  slices_[name] = slice.get();
  return slice;
}

void SlimServer::End(const std::string& failure) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    if (failure_.empty()) failure_ = failure;
  }
  changed_.notify_all();
}

// Under the lock; the name of a key whose snapshot is not there yet.
std::string SlimServer::TakeSnapshots(int32_t store, uint64_t round, Snapshots* snapshots) {
  std::string missing;
  for (const auto& slice : slices_) {
    if (slice.second->declaration().store != store) continue;
    auto snapshot = slice.second->TakeSnapshot(round);
    if (snapshot != nullptr) (*snapshots)[slice.first] = std::move(snapshot);
    if (snapshots->count(slice.first) == 0) missing = slice.second->declaration().name;
  }
  return missing;
}

bool SlimServer::AwaitRound(int32_t store, uint64_t round, size_t slices, double seconds) {
  const auto complete = [&] {
    size_t found = 0;
    for (const auto& slice : slices_) {
      if (slice.second->declaration().store == store && slice.second->HasSnapshot(round)) ++found;
    }
    return found >= slices;
  };
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return ended_ || complete(); });
  CheckNotEnded();
  return complete();
}

std::unique_ptr<CoreSelection> SlimServer::AwaitSelection(int32_t store, uint64_t round,
                                                          size_t slices) {
  Snapshots snapshots;
  std::string missing;
  const double since = Now();
  // After the server's watchdog, which knows better who is missing where anybody has begun the
  // round, and before workers, who only know that they wait for a core.
  const double limit = limits_.patience + limits_.Interval();
  std::unique_lock<std::mutex> lock(mutex_);
  const auto complete = [&] {
    if (ended_) return true;
    missing = TakeSnapshots(store, round, &snapshots);
    return snapshots.size() >= slices;
  };
  const auto pause = [&] {
    const double left = since + limit - Now();
    return std::chrono::duration<double>(std::min(limits_.Notice(), left));
  };
  while (!changed_.wait_for(lock, pause(), complete)) {
    const std::string why = "a core cannot be selected: round " + std::to_string(round) +
                            " of key " + (missing.empty() ? "?" : missing) + " is not complete";
    const std::string hint = "; keys that are never pushed belong into the option exclude";
    if (Now() - since >= limit) {
      throw std::runtime_error(why + " within " + Seconds(limits_.patience) + hint);
    }
    Say("kvstore_ext server waits: " + Printable(why) + ", for " +
        Seconds(std::floor(Now() - since)) + hint);
  }
  CheckNotEnded();
  return std::make_unique<CoreSelection>(std::move(snapshots));
}

void SlimServer::SetCores(uint64_t selection, std::map<SliceName, Subset> cores) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& core : cores) SliceOf(core.first).TellCore(selection, std::move(core.second));
}

void SlimServer::Resume(const SliceName& name, const Buffer& parameters,
                        std::map<uint64_t, Subset> cores) {
  std::lock_guard<std::mutex> lock(mutex_);
  SliceOf(name).Resume(parameters, std::move(cores));
}

void SlimServer::CheckNotEnded() const {
  if (ended_) throw std::runtime_error(failure_.empty() ? "the server ends" : failure_);
}

SlimSlice& SlimServer::SliceOf(const SliceName& name) {
  CheckNotEnded();
  const auto found = slices_.find(name);
  if (found != slices_.end()) return *found->second;
  throw std::invalid_argument("key " + std::to_string(name.first) + ", slice " +
                              std::to_string(name.second) + " is not of slim_dp here");
}

}  // namespace kvstore_ext
