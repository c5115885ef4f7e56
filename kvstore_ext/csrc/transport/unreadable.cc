#include "transport/unreadable.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/clock.h"

namespace kvstore_ext {
namespace {

constexpr char kParts[] = "parts of messages";

// Strangers' are forgotten soon, unless they come in a flood.
constexpr size_t kMostBatches = 64;

}  // namespace

void Unreadable::NoteIfUnfit(const Message& whole, const Action& act) {
  try {
    act();
  } catch (const Unfit& error) {
    gate_->Refuse(Described(whole), error.what());
    Note(whole, error.what());
  }
}

void Unreadable::NoteIfUnfitPart(const Action& act) {
  try {
    act();
  } catch (const UnfitPart& error) {
    gate_->Refuse(kParts, error.what());
    Note(error.part, error.what());
  } catch (const Unfit& error) {
    gate_->Refuse(kParts, error.what());
  }
}

// Without its payload.
void Unreadable::Note(const Message& message, const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Header& header = message.header;
  if (header.type == MessageType::kBatch) {
    if (batches_.size() == kMostBatches) batches_.erase(batches_.begin());
    Message batch;
    batch.peer = message.peer;
    batch.header = header;
    batches_.push_back({std::move(batch), why, Now()});
    return;
  }
  Entry& entry = entries_[{message.peer, header.type, header.key, header.slice}];
  if (entry.since > 0 && entry.message.header.round == header.round) return;
  entry.message = message;
  entry.message.payload = Buffer();
  entry.why = why;
  entry.since = Now();
}

std::string Unreadable::Entry::Told(double seconds) const {
  return Described(message) + " could not be read (" + why + "), and for " + Seconds(seconds) +
         " no other has come in its place: the memory or the network of a host fails, or "
         "somebody else reaches this job's ports";
}

std::string Unreadable::Overdue(double seconds, const Awaited& awaited) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (!awaited(entry.message)) {
      it = entries_.erase(it);
      continue;
    }
    if (Now() - entry.since > seconds) return entry.Told(seconds);
    ++it;
  }
  return "";
}

std::string Unreadable::OverdueBatch(double seconds, const WaitedFor& waited_for) {
  std::lock_guard<std::mutex> lock(mutex_);
  const double now = Now();
  for (auto it = batches_.begin(); it != batches_.end();) {
    const std::optional<double> since = waited_for(it->message.peer, it->since);
    if (since && now - std::max(*since, it->since) > seconds) return it->Told(seconds);
    // Of the first value of a key nobody here may know yet.
    it = since || now - it->since <= seconds ? std::next(it) : batches_.erase(it);
  }
  return "";
}

}  // namespace kvstore_ext
