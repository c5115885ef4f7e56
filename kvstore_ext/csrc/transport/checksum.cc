#include "transport/checksum.h"

#include "support/crc32c.h"
#include "support/this_host.h"

namespace kvstore_ext {
namespace {

std::string DescribedAsDamaged(const Header& header) {
  return "a " + NameOf(header.type) +
         (IsOfRound(header.type) ? " " + RoundNamed(header) + "," : "") +
         " was damaged on its way: its checksum is not that of its bytes";
}

}  // namespace

Damaged::Damaged(const Message& message)
    : std::runtime_error(DescribedAsDamaged(message.header)), peer(message.peer) {}

std::string Damaged::Told(const std::string& role, const std::map<int, std::string>& hosts) const {
  const auto host = hosts.find(peer);
  return std::string(what()) + "; it came from " + role + " " + std::to_string(peer) +
         (host == hosts.end() ? "" : " on " + host->second) + " to " + ThisHost() +
         ": the memory or the network of one of these fails";
}

uint32_t ChecksumOf(const Message& message) {
  Header header = message.header;
  header.checksum = 0;
  uint32_t checksum = Crc32c(reinterpret_cast<const char*>(&header), sizeof header);
  checksum = Crc32c(message.text.data(), message.text.size(), checksum);
  checksum = Crc32c(message.payload.data.get(), message.payload.size, checksum);
  return checksum == 0 ? 1 : checksum;
}

void CheckUndamaged(const Message& message) {
  const uint32_t checksum = message.header.checksum;
  if (checksum != 0 && checksum != ChecksumOf(message)) throw Damaged(message);
}

}  // namespace kvstore_ext
