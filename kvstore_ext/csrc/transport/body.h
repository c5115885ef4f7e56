// What ps-lite carries of a message in its body: the header, a place if the payload lies in shared
// memory, and the text.
#pragma once

#include <optional>
#include <string>

#include "transport/message.h"

namespace kvstore_ext {

std::string BodyOf(const Message& message, const std::optional<Place>& place);

// A message of a body, to which a place belongs if `is_placed`. Nothing for what this version of
// kvstore_ext has not written: the bytes come from the network, and may be any.
std::optional<Message> ReadBody(const std::string& body, bool is_placed);

// What is to be made of such a body: news that a peer runs another version, where one has written
// it; or else news from nobody, which the gate counts.
Message NewsOf(const std::string& foreign_body, int peer);

}  // namespace kvstore_ext
