// Several messages as one, so that what a message costs ps-lite, ZMQ and the kernel is paid once:
// small ones, and those that only say where their payload lies.
#pragma once

#include <vector>

#include "transport/message.h"

namespace kvstore_ext {

// Gathers messages to one peer in the order in which they shall arrive. Not thread-safe.
class Batch {
 public:
  // Payloads of more bytes gain less than copying them costs.
  static constexpr size_t kMostSmall = 16384;
  // As much as is copied into one message; more would keep what follows from leaving. The payloads
  // that have places are not in it: of these the window lets out a dozen at most.
  static constexpr size_t kMostBytes = 65536;

  // Whether a message may travel in a batch: a whole one with few bytes, or with a place.
  static bool IsSmall(const Message& message);

  // Always while it is empty, for a small one.
  bool HasRoomFor(const Message& message) const { return bytes_ + SizeOf(message) <= kMostBytes; }

  void Add(Message message);

  bool empty() const { return messages_.empty(); }

  // What its messages would be without it: the bytes of all together.
  size_t message_bytes() const { return message_bytes_; }

  // The one message that was added, or one of type kBatch with all of them, as urgent as the first;
  // the batch is empty again.
  Message Take();

  // What is found in a batch.
  struct Contents {
    // Ranges of its bytes; places are to be fetched.
    std::vector<Message> messages;
    // Bytes behind these that Take did not make: nobody knows what was there.
    size_t unread = 0;
  };
  static Contents Read(const Message& batch);

  // Throws UnfitPart for a batch of which so many bytes could not be read.
  [[noreturn]] static void Refuse(const Message& batch, size_t unread);

 private:
  static size_t SizeOf(const Message& message);

  std::vector<Message> messages_;
  size_t bytes_ = 0;  // as they will lie there
  size_t message_bytes_ = 0;
};

}  // namespace kvstore_ext
