// What tells whether a message has come as it was sent: networks and memory do fail, and TCP's own
// sum of 16 bits lets some of it through.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "transport/message.h"

namespace kvstore_ext {

// Thrown for a message that is not what its sender, a process of the job, has sent.
struct Damaged : std::runtime_error {
  explicit Damaged(const Message& message);

  // The same with the hosts that it came from and to; those of the senders, by rank, in this role.
  std::string Told(const std::string& role, const std::map<int, std::string>& hosts) const;

  int peer = 0;
};

// CRC-32C of all that its header, its text and its payload hold but for the checksum itself; never
// 0, which stands for a message without one.
uint32_t ChecksumOf(const Message& message);

// Throws Damaged where a message has another checksum than it came with.
void CheckUndamaged(const Message& message);

}  // namespace kvstore_ext
