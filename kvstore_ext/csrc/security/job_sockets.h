// Sockets that belong to a job: whoever binds or connects one needs the job's key.
#pragma once

#include "security/slots.h"
#include "security/zeromq.h"

namespace kvstore_ext {

// Notes the slots through which sockets are bound and connected, from which on nobody can have
// ZeroMQ 4.2.2 write elsewhere: by a message that is announced as so large (CVE-2019-6250), or by
// the first versions of its protocol (CVE-2021-20235). Throws std::runtime_error where the library
// has not got these functions.
void HardenSockets(Slots* slots);

// The same for sockets of a job with a key: from which on every connection
// begins with CURVE's handshake. `secret` are the kCurveKeyBytes of the key that all sockets of the
// job have which others connect to. The public key that belongs to it is known to the job alone,
// too: so nobody else can make the first message of a handshake, nor is answered. Throws
// std::runtime_error where the library has not got these functions.
void KeySockets(const uint8_t* secret, Slots* slots);

}  // namespace kvstore_ext
