#include "transport/body.h"

#include <cstring>

namespace kvstore_ext {
namespace {

// Bodies begin with this, in every version.
constexpr uint32_t kAnyProtocol = Header::kProtocol >> 16;

uint32_t ProtocolOf(const std::string& body) {
  uint32_t protocol = 0;
  if (body.size() >= sizeof protocol) std::memcpy(&protocol, body.data(), sizeof protocol);
  return protocol;
}

}  // namespace

std::string BodyOf(const Message& message, const std::optional<Place>& place) {
  std::string body(reinterpret_cast<const char*>(&message.header), sizeof(Header));
  if (place) body.append(reinterpret_cast<const char*>(&*place), sizeof(Place));
  body += message.text;
  return body;
}

std::optional<Message> ReadBody(const std::string& body, bool is_placed) {
  if (ProtocolOf(body) != Header::kProtocol || body.size() < sizeof(Header)) return std::nullopt;
  Message message;
  std::memcpy(&message.header, body.data(), sizeof(Header));
  size_t begin = sizeof(Header);
  if (is_placed && body.size() >= begin + sizeof(Place)) {
    std::memcpy(&message.place.emplace(), body.data() + begin, sizeof(Place));
    begin += sizeof(Place);
  }
  message.text = body.substr(begin);
  return message;
}

Message NewsOf(const std::string& foreign_body, int peer) {
  Message news = ControlMessage(MessageType::kAbort,
                                "a process of this job runs another version of kvstore_ext");
  news.peer = ProtocolOf(foreign_body) >> 16 == kAnyProtocol ? peer : kNobody;
  return news;
}

}  // namespace kvstore_ext
