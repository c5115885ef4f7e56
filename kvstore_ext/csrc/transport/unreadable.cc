#include "transport/unreadable.h"

#include "support/clock.h"

namespace kvstore_ext {
namespace {

constexpr char kParts[] = "parts of messages";

}  // namespace

void Unreadable::ActUpon(const Message& whole, const Action& act) {
  try {
    act();
  } catch (const Unfit& error) {
    gate_->Refuse(Described(whole), error.what());
    Note(whole, error.what());
  }
}

void Unreadable::ActUponParts(const Action& act) {
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
  Entry& entry = entries_[{message.peer, header.type, header.key, header.slice}];
  if (entry.since > 0 && entry.message.header.round == header.round) return;
  entry.message = message;
  entry.message.payload = Buffer();
  entry.why = why;
  entry.since = Now();
}

std::string Unreadable::Overdue(double seconds, const Awaited& awaited) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (!awaited(entry.message)) {
      it = entries_.erase(it);
      continue;
    }
    if (Now() - entry.since > seconds) {
      return Described(entry.message) + " could not be read (" + entry.why + "), and for " +
             Seconds(seconds) +
             " no other has come in its place: the memory or the network of a host fails, or "
             "somebody else reaches this job's ports";
    }
    ++it;
  }
  return "";
}

}  // namespace kvstore_ext
