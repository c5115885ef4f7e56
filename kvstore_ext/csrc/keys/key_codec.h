// How a key's rounds travel from its worker, and come back: what P3 asks of every method.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "keys/slice_declaration.h"
#include "keys/slicer.h"
#include "transport/message.h"

namespace kvstore_ext {

struct Result;

// How many elements came out as zero, of how many that were looked at.
struct ZeroCount {
  uint64_t zeros = 0, looked_at = 0;
};

// What a codec may ask of the worker that has its key. Thread-safe; lives as long as the worker.
class KeyLane {
 public:
  virtual ~KeyLane() = default;

  virtual uint64_t key() const = 0;
  virtual const SliceDeclaration& declaration() const = 0;
  virtual const std::vector<Slice>& slices() const = 0;
  virtual int rank() const = 0;

  // Whether rounds go without this worker (keys/idle.h).
  virtual bool is_idle() const = 0;

  // Both send a message about the key, whose number they fill in: SendControl without a payload, as
  // Link does, SendData with one, when the link has room.
  virtual void SendControl(int server, Message message) = 0;
  virtual void SendData(int server, Message message) = 0;

  // All slices of the round that was prepared can be encoded now.
  virtual void AdmitRound(uint64_t round, Encoding encoding) = 0;

  // Whether the slice's result is still missing.
  virtual bool IsMissing(const Slice& slice) = 0;

  // Encodes the slice of this round once more and sends it, unless its result has come.
  virtual void SendAgain(const Slice& slice) = 0;

  // Runs a task that writes a slice's result of this round on one of the threads that encode, in
  // the key's turn. What it throws ends the job.
  virtual void WriteInTurn(const Slice& slice, uint64_t round, const Result& result,
                           std::function<void()> write) = 0;

  // Runs a task there after everything that is to be sent. What it throws is dropped.
  virtual void RunLast(std::function<void()> task) = 0;
};

// What a server made of a slice in a round, as it arrived.
struct Result {
  Buffer payload;
  Encoding encoding = Encoding::kPlain;
};

// An input that cannot be encoded, and ends the job because the user wants that.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One key's. A worker attaches it, then for each round prepares the input, encodes every slice,
// and receives every slice's result; the next round comes after that. Round 0, the key's first
// value, is only received, and so are results that are read once more.
//
// Encode may run for several slices at a time, on any threads, also while others are received.
// Keep, Receive, Discard, Skip, awaited and Awaits are called under the key's lock, one at a time:
// of KeyLane they use what describes the key, WriteInTurn and RunLast, and nothing else. Without
// that lock the receiving thread calls CheckMessage and OnMessage. These two, and the watchdog's
// awaited and Awaits, may come while the round is prepared or encoded.
class KeyCodec {
 public:
  virtual ~KeyCodec() = default;

  // How a server knows the method: see SliceDeclaration::method.
  virtual std::string specification() const = 0;

  // How the key is cut into slices: bytes that an element takes as it travels, and of how many
  // elements slices begin at multiples.
  virtual double bytes_per_element(DType dtype) const = 0;
  virtual size_t alignment() const { return 1; }

  // The worker's side of the key, before its first operation. Throws std::invalid_argument for a
  // key that it does not take, which it then does not know.
  virtual void Attach(KeyLane* lane) { lane_ = lane; }

  // Whether encoding a slice takes longer than waking a thread for it.
  virtual bool encodes_in_turn() const;

  // Takes the round's input, which stays where it is until all slices are encoded. `plain` asks for
  // numbers of the key's type, without loss. Returns how the round travels, once that is known and
  // slices can be encoded; nothing where KeyLane::AdmitRound will tell. Throws NotFinite.
  virtual std::optional<Encoding> Prepare(const char* input, uint64_t round, bool plain) = 0;

  // A slice of the round, as it was admitted: kPlain or kEncoded.
  virtual Buffer Encode(const Slice& slice, uint64_t round, Encoding encoding) = 0;

  // A slice's result has come. Writes it into the key's output, unless that is nullptr; false where
  // a task does, which KeyLane::WriteInTurn was given. Throws std::exception for a result that is
  // none.
  virtual bool Receive(const Slice& slice, uint64_t round, const Result& result, char* output) = 0;

  // A slice's result has come that nobody takes yet: what is to be kept of it, until Receive writes
  // that. Throws std::exception as Receive.
  virtual Result Keep(const Slice& slice, const Result& result) const;

  // The round that was prepared last does not count.
  virtual void Discard() {}

  // Rounds have gone without this worker, the last of them this one.
  virtual void Skip(uint64_t round) { (void)round; }

  // Throws std::exception for a server's message about the key that the method does not know.
  virtual void CheckMessage(const Message& message) const;

  // A server's message about the key, kScaler or kMethod, that CheckMessage has let in.
  virtual void OnMessage(const Message& message) { (void)message; }

  // The servers that a prepared round waits for before it can be encoded; nothing where all are.
  virtual std::set<int> awaited() const { return {}; }

  // Whether a round that is prepared, and cannot be encoded yet, waits for such a message, of type
  // kMethod.
  virtual bool Awaits(const Message& message) const {
    (void)message;
    return true;
  }

  // The last scaler with which a slice was encoded; 0 for none.
  virtual float scaler() const { return 0; }

  // Of the elements encoded so far, from a sample of the slices.
  virtual ZeroCount zeros() const { return {}; }

 protected:
  // Throws std::logic_error for a codec that no key has.
  KeyLane& lane() const {
    if (lane_ == nullptr) throw std::logic_error("a codec is asked that no key has");
    return *lane_;
  }

  // Throws NotFinite for the input of this round.
  [[noreturn]] void RefuseInput(uint64_t round) const;

  // Writes a result that is not encoded: numbers, or nothing where the round does not count. Throws
  // as CheckPlain.
  void WritePlain(const Slice& slice, const Result& result, char* output) const;

  // Throws std::runtime_error for an encoding, or another number of bytes.
  void CheckPlain(const Slice& slice, const Result& result) const;

 private:
  KeyLane* lane_ = nullptr;  // the worker's; set by Attach, then only read
};

}  // namespace kvstore_ext
