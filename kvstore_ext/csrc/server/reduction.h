// What a server makes of one slice, round by round: the interface that its methods implement.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "keys/payload_sizes.h"
#include "keys/slice_declaration.h"
#include "server/aggregator.h"
#include "transport/gate.h"
#include "transport/message.h"

namespace kvstore_ext {

// A slice at its server, and what its reduction may ask of that. `send` sends a worker a message of
// type kMethod about the slice, in which the key and the slice's index are filled in; from any
// thread and under any lock, as long as the server lives.
struct SliceContext {
  SliceName name;
  SliceDeclaration declaration;
  int workers = 1;
  bool deterministic = false;  // whether sums are to be in the order of ranks
  std::function<void(int worker, Message message)> send;
};

// What a worker gets of a slice.
struct SliceAnswer {
  Encoding encoding = Encoding::kPlain;
  Buffer payload;
};

// Takes what each worker sends in the open round; when all have that take part, the server finishes
// the round, answers them, and the next one is open. Round 0 gives the slice its first value.
// Called under the server's lock, which guards what it holds; one that has calls of its own needs a
// lock of its own.
class Reduction {
 public:
  explicit Reduction(SliceContext context) : context_(std::move(context)) {}
  virtual ~Reduction() = default;

  // A worker's part in the open round, in which it has none yet. False where it does not count and
  // the worker sends another one. Throws std::exception for what no worker may send.
  virtual bool Accept(const Message& message) = 0;

  // The workers that have a part in the open round.
  virtual const std::set<int>& heard() const = 0;

  // Whether what workers give are gradients, whose rounds are steps of the job.
  virtual bool takes_gradients() const { return true; }

  // Whether a round may go without workers that have nothing to give.
  virtual bool spares_idle() const { return false; }

  // Such a worker has a part in the open round too: nothing. `factor` multiplies the round's sum.
  // Before Finish or TakeGradient, for each of them. Precondition: spares_idle().
  virtual void AddNothing(int worker, double factor) {
    (void)worker, (void)factor;
    throw std::logic_error("no round of this slice goes without a worker");
  }

  // Ends the round: the value is what the method makes of it. Precondition: all workers are heard.
  virtual void Finish(uint64_t round) = 0;

  // Whether workers encode with a scaler that they share.
  virtual bool shares_scaler() const { return false; }

  // Whether a store's optimizer, where there is one, makes the value of the sum.
  virtual bool takes_optimizer() const { return false; }

  // Instead of Finish, with an optimizer: the sum that it takes, of SumTypeOf(dtype); it overwrites
  // value(). False where the round does not count, and the value stays.
  virtual bool TakeGradient(Buffer*) { throw std::logic_error("no optimizer updates this slice"); }
  virtual Buffer value() const { return Buffer(); }

  // Goes on from another value of an optimizer's, in the memory of the last one. Nobody may be
  // waiting for that any more. Throws std::invalid_argument for one of another size, and where no
  // optimizer makes the values.
  virtual void SetValue(const Buffer&) {
    throw std::invalid_argument("key " + context_.declaration.name +
                                " has no value that could be set");
  }

  // What a worker gets of the round that was finished last.
  virtual SliceAnswer AnswerTo(int worker) const = 0;

  // What a worker gets that asks for the slice.
  virtual SliceAnswer Value() const = 0;

  // Throws Unfit for a message of type kMethod with a payload of so many bytes, if the method knows
  // no such message.
  virtual void CheckMessage(size_t bytes) const {
    (void)bytes;
    throw Unfit("its method knows no such message");
  }

  // A worker's message of type kMethod.
  virtual void OnMessage(const Message&) {
    throw std::runtime_error("key " + context_.declaration.name +
                             ": a worker sent a message that its method does not know");
  }

  // Whether the open round waits for a message of type kMethod for which a worker was asked.
  virtual bool Awaits(int worker) const {
    (void)worker;
    return false;
  }

  // What encodings have left out so far and the next round takes along, as float32; nothing where
  // that is not so. Going on as if `rounds` had been before the open round throws
  // std::invalid_argument for another number of elements than the slice has.
  virtual std::vector<float> carried_over() const { return {}; }
  virtual void CarryOver(uint64_t rounds, uint64_t open_round, std::vector<float> values) {
    (void)rounds, (void)open_round;
    if (!values.empty()) {
      throw std::invalid_argument("key " + context_.declaration.name + " carries nothing over");
    }
  }

  // Bytes that it holds, values and open sums.
  virtual size_t held_bytes() const = 0;

  const SliceDeclaration& declaration() const { return context_.declaration; }

 protected:
  const SliceContext& context() const { return context_; }

  // Adds values that are not encoded: of round 0 rank 0's alone. Throws as CheckBytes.
  void AddPlain(const Message& message, Aggregator* sum) const {
    const SliceDeclaration& slice = context_.declaration;
    const bool has_values = message.header.round > 0 || message.peer == 0;
    CheckBytes(message, has_values ? PlainBytes(slice.dtype, slice.elements) : 0);
    if (has_values) {
      sum->Add(message.peer, message.payload, message.payload_is_ours);
    } else {
      sum->AddNothing(message.peer);
    }
  }

  // Throws std::runtime_error for a payload of another size.
  void CheckBytes(const Message& message, size_t expected) const {
    if (message.payload.size == expected) return;
    throw std::runtime_error(
        "key " + context_.declaration.name + ": worker " + std::to_string(message.peer) + " sent " +
        std::to_string(message.payload.size) + " bytes for a slice of " + std::to_string(expected));
  }

 private:
  const SliceContext context_;
};

// A method that is more than a codec, at a server: makes the reductions of its slices. Outlives the
// server. Thread-safe.
class ServerMethod {
 public:
  virtual ~ServerMethod() = default;

  // Throws std::invalid_argument for a declaration that it does not understand.
  virtual std::unique_ptr<Reduction> MakeReduction(SliceContext context) = 0;

  // The server ends, for this reason if it failed: nobody may wait any more.
  virtual void End(const std::string& failure) = 0;
};

// The reduction of a slice that is added up, compressed or not, or broadcast (reductions.cc).
// Throws std::invalid_argument for another method.
std::unique_ptr<Reduction> MakeReduction(SliceContext context);

}  // namespace kvstore_ext
