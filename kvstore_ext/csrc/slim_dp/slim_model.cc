#include "slim_dp/slim_model.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "slim_dp/explorer.h"
#include "support/random.h"

namespace kvstore_ext {
namespace {

// Keys of a model are in neighbouring rounds at most, and the next is drawn ahead.
constexpr size_t kRoundsKept = 4;

// A stream beside those of keys, which are names' digests or small numbers.
constexpr uint64_t kSharesKey = 0x7368617265730000ULL;

}  // namespace

SlimModel::SliceNumber SlimModel::Add(size_t elements) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (sized_) throw std::logic_error("a key is declared after the first round of slim_dp");
  elements_.push_back(elements);
  if (options_.fixed()) {
    fixed_.push_back(std::make_shared<Core>(Subset(elements, options_.core_share == 1)));
  }
  return elements_.size() - 1;
}

void SlimModel::SetSizes(size_t core, size_t together) {
  std::unique_lock<std::mutex> lock(mutex_);
  const size_t all = std::accumulate(elements_.begin(), elements_.end(), size_t{0});
  if (core > together || together > all) {
    throw std::invalid_argument("a core of " + std::to_string(core) + " elements among " +
                                std::to_string(together) + " of " + std::to_string(all));
  }
  core_ = core;
  together_ = together;
  sized_ = true;
  const auto ready = TakeReady();
  lock.unlock();
  for (const auto& then : ready) then();
}

void SlimModel::SetCore(SliceNumber number, uint64_t selection, Subset members) {
  auto core = std::make_shared<Core>(std::move(members));
  std::unique_lock<std::mutex> lock(mutex_);
  cores_[selection][number] = std::move(core);
  while (cores_.size() > kCoresKept) cores_.erase(cores_.begin());
  explorers_.clear();
  const auto ready = TakeReady();
  lock.unlock();
  for (const auto& then : ready) then();
}

// Those that wait for nothing any more; under the lock.
std::vector<std::function<void()>> SlimModel::TakeReady() {
  std::vector<std::function<void()>> ready;
  const auto first_ready =
      std::stable_partition(waiting_.begin(), waiting_.end(),
                            [this](const auto& waiting) { return !IsReady(waiting.first); });
  for (auto it = first_ready; it != waiting_.end(); ++it) ready.push_back(std::move(it->second));
  waiting_.erase(first_ready, waiting_.end());
  return ready;
}

bool SlimModel::ReadyOr(uint64_t round, std::function<void()> then) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (IsReady(round)) return true;
  waiting_.emplace_back(round, std::move(then));
  return false;
}

std::shared_ptr<const Core> SlimModel::CoreOf(SliceNumber number, uint64_t round) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return Find(number, round);
}

std::map<uint64_t, std::shared_ptr<const Core>> SlimModel::CoresOf(SliceNumber number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<uint64_t, std::shared_ptr<const Core>> cores;
  for (const auto& selection : cores_) {
    const auto found = selection.second.find(number);
    if (found != selection.second.end()) cores.emplace(selection.first, found->second);
  }
  return cores;
}

bool SlimModel::HasCore(SliceNumber number, uint64_t selection) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = cores_.find(selection);
  return found != cores_.end() && found->second.count(number) != 0;
}

uint64_t SlimModel::SelectionIn(uint64_t round) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return SelectionOf(round);
}

// A core is selected from what a full round has made.
uint64_t SlimModel::LastSelectionBy(uint64_t round) const {
  return RoundOf(round) / options_.rounds_per_selection;
}

const std::shared_ptr<const Core>& SlimModel::Find(SliceNumber number, uint64_t round) const {
  if (options_.fixed()) return fixed_.at(number);
  return cores_.at(SelectionOf(round)).at(number);
}

size_t SlimModel::Outside(SliceNumber number, uint64_t round) const {
  return elements_[number] - Find(number, round)->members.count();
}

bool SlimModel::Ready(uint64_t round) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return IsReady(round);
}

bool SlimModel::IsReady(uint64_t round) const {
  if (!sized_ || options_.fixed()) return sized_;
  const auto found = cores_.find(SelectionOf(round));
  return found != cores_.end() && found->second.size() == elements_.size();
}

size_t SlimModel::ExplorersOf(SliceNumber number, uint64_t round) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<size_t>& counts = explorers_[round];
  if (counts.empty()) {
    size_t outside = 0;
    for (SliceNumber other = 0; other < elements_.size(); ++other) {
      outside += Outside(other, round);
    }
    size_t left = std::min(together_ - core_, outside);  // where a server has told other cores
    const uint64_t stream =
        StreamOf(options_.seed, static_cast<uint32_t>(rank_), kSharesKey, earlier_rounds_ + round);
    for (SliceNumber other = 0; other < elements_.size(); ++other) {
      const size_t part = Outside(other, round);
      counts.push_back(left == 0 ? 0 : DrawShare(outside, part, left, stream, other));
      outside -= part;
      left -= counts.back();
    }
  }
  const size_t count = counts.at(number);
  while (explorers_.size() > kRoundsKept) explorers_.erase(explorers_.begin());
  return count;
}

void SlimModel::Resume(uint64_t earlier_rounds) {
  std::lock_guard<std::mutex> lock(mutex_);
  earlier_rounds_ = earlier_rounds;
  cores_.clear();
  explorers_.clear();
}

uint64_t SlimModel::RoundOf(uint64_t round) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return earlier_rounds_ + round;
}

}  // namespace kvstore_ext
