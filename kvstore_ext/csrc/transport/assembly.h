// Puts together again what a link sends in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "support/buffer.h"
#include "transport/message.h"

namespace kvstore_ext {

// A peer's messages of which some parts have come. Not thread-safe: its link's receiving thread
// calls it.
class Assemblies {
 public:
  explicit Assemblies(int peer) : peer_(peer) {}

  // Takes a part. True with the last to come, which becomes the message. Throws UnfitPart, or Unfit
  // where it is of no slice, for a part that does not fit the others.
  bool Add(Message* part);

 private:
  // What has come of a message. Memory is taken for that, and not for what it says is to come.
  struct Assembly {
    std::string text;
    std::map<uint32_t, Buffer> parts;  // by offset
    size_t whole = 0, missing = 0;     // bytes

    bool HasRoomFor(const Message& part) const;
    Buffer PutTogether() const;
  };

  const int peer_;
  // By type, key, slice and round.
  std::map<std::tuple<MessageType, uint64_t, uint32_t, uint64_t>, Assembly> assemblies_;
};

}  // namespace kvstore_ext
