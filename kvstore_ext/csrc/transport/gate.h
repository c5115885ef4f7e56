// The gate: what comes from the network passes here before anything is done with it.
#pragma once

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>

#include "transport/message.h"

namespace kvstore_ext {

// Thrown for what no process of the job sends, while nothing has been changed by it.
struct Unfit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown for a part of a slice that does not fit those that have come, one of which is not right,
// or for a batch that breaks off.
struct UnfitPart : Unfit {
  UnfitPart(const std::string& why, const Message& of) : Unfit(why), part(of) {}
  Message part;
};

// Who listens.
enum class Side { kWorker, kServer, kScheduler };

// Knows who may send what, and when. What may not come in is dropped and counted, and the first is
// named on standard error; nothing ends of it. A sender is who it says it is: the gate keeps bytes
// from doing what no process of the job could, and not strangers from doing what one may.
//
// Admits is the receiving thread's; the rest is thread-safe.
class Gate {
 public:
  // `check` knows what the process has agreed on with others: it throws std::exception for a
  // message, or a part of one, that does not fit that, and changes nothing.
  using Check = std::function<void(const Message&)>;
  // `has_checksum` says whether a message is from a process of the job with which checksums are
  // agreed. What anybody else sends is never called damaged, which ends a job.
  using HasChecksum = std::function<bool(const Message&)>;

  explicit Gate(Side side, Check check = nullptr, HasChecksum has_checksum = nullptr)
      : side_(side), check_(std::move(check)), has_checksum_(std::move(has_checksum)) {}

  // Whether a message, a part of one or a batch may come in; counted where it may not. To be asked
  // again of each message of a batch. Throws Damaged for one that is to have a checksum and has
  // another.
  bool Admits(const Message& message);

  // Counts what was found later to be none of the job's; `what` and why, for people.
  void Refuse(const std::string& what, const std::string& why);

  uint64_t refused() const { return refused_; }

 private:
  const Side side_;
  const Check check_;
  const HasChecksum has_checksum_;
  std::atomic<uint64_t> refused_{0};
};

// A message, for people.
std::string Described(const Message& message);

// Of what comes from a process that the number of the job is not known to.
constexpr char kOfAnotherJob[] = "it is of another job";

// Throws Unfit, with this reason, where something does not hold.
inline void Expect(bool holds, const char* otherwise) {
  if (!holds) throw Unfit(otherwise);
}

}  // namespace kvstore_ext
