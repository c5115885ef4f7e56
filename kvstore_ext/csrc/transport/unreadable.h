// What a process of the job has sent as far as anybody can tell, and what cannot be read: somebody
// else has sent it, or it was damaged on its way.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "transport/gate.h"
#include "transport/message.h"

namespace kvstore_ext {

// Nothing ends by such a message alone, for what is to come in its place mostly does. Where it does
// not, the message was the one that somebody waits for, and nobody will send it again. Thread-safe.
class Unreadable {
 public:
  using Action = std::function<void()>;
  // Whether somebody waits for such a message still.
  using Awaited = std::function<bool(const Message&)>;
  // Since when somebody waits for what may have been in a batch that came from a peer at that time;
  // nothing where nobody does. Times are Now()'s, and one to come where somebody may yet.
  using WaitedFor = std::function<std::optional<double>(int peer, double came)>;

  explicit Unreadable(Gate* gate) : gate_(gate) {}

  // Acts upon a message that has passed the gate; if the action throws Unfit, the gate counts it
  // and it is noted here.
  void NoteIfUnfit(const Message& whole, const Action& act);

  // The same of parts of one, which are put together meanwhile, and of batches.
  void NoteIfUnfitPart(const Action& act);

  // Of those that nobody waits for any more forgets all; of the others the first, for an error, if
  // so many seconds have passed since it came. Empty if there is none.
  std::string Overdue(double seconds, const Awaited& awaited);

  // The same of batches that break off. Nobody knows what was in the rest of them: one is the
  // reason of a wait if somebody has waited for so many seconds since it came.
  std::string OverdueBatch(double seconds, const WaitedFor& waited_for);

 private:
  struct Entry {
    Message message;
    std::string why;
    double since = 0;

    std::string Told(double seconds) const;
  };
  using Origin = std::tuple<int, MessageType, uint64_t, uint32_t>;  // peer, type, key, slice

  void Note(const Message& message, const std::string& why);

  Gate* const gate_;
  std::mutex mutex_;  // of all below
  std::map<Origin, Entry> entries_;
  std::vector<Entry> batches_;  // the last few
};

}  // namespace kvstore_ext
