#include "transport/assembly.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "transport/gate.h"

namespace kvstore_ext {

bool Assemblies::Assembly::HasRoomFor(const Message& part) const {
  const size_t begin = part.header.offset, end = begin + part.payload.size;
  const auto next = parts.lower_bound(part.header.offset);
  if (part.header.whole != whole || end > whole) return false;
  if (next != parts.end() && next->first < end) return false;
  if (next == parts.begin()) return true;
  const auto& before = *std::prev(next);
  return before.first + before.second.size <= begin;
}

Buffer Assemblies::Assembly::PutTogether() const {
  Buffer payload = Buffer::Allocate(whole);
  for (const auto& part : parts) {
    std::memcpy(payload.data.get() + part.first, part.second.data.get(), part.second.size);
  }
  return payload;
}

bool Assemblies::Add(Message* part) {
  const Header& header = part->header;
  const auto id = std::make_tuple(header.type, header.key, header.slice, header.round);
  Assembly& assembly = assemblies_[id];
  if (assembly.parts.empty()) assembly.whole = assembly.missing = header.whole;
  if (!assembly.HasRoomFor(*part)) {
    const std::string why =
        "peer " + std::to_string(peer_) + " sent bytes " + std::to_string(header.offset) + " to " +
        std::to_string(header.offset + part->payload.size) + " of " + std::to_string(header.whole) +
        ", of which others have come, or of another number";
    const bool awaited = IsReadInRound(*part) || part->header.type == MessageType::kInit;
    if (awaited) throw UnfitPart(why, *part);
    throw Unfit(why);
  }
  if (!part->text.empty()) assembly.text = std::move(part->text);
  assembly.missing -= part->payload.size;
  assembly.parts[header.offset] = std::move(part->payload);
  if (assembly.missing > 0) return false;
  part->text = std::move(assembly.text);
  part->payload = assembly.PutTogether();
  part->payload_is_ours = true;
  assemblies_.erase(id);
  return true;
}

}  // namespace kvstore_ext
