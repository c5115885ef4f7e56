// What anybody could do to ZeroMQ 4.2.2 in CURVE's handshake, before either side has proved its
// key.
#pragma once

#include "security/slots.h"

namespace kvstore_ext {

// Notes the slots through which ZeroMQ reads the last word of each side, which it copies into an
// array of its stack however long it is (CVE-2019-13132): a longer one ends the connection. So does
// a server's that comes before the client's own last word has left. ZeroMQ would open that with a
// key which is not agreed on yet. Throws std::runtime_error where the library has not got these
// functions.
void CheckHandshakes(Slots* slots);

}  // namespace kvstore_ext
