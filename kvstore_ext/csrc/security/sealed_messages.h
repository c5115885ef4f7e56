// How the messages of a connection are sealed and opened: by MessageCipher, in place of NaCl's
// cipher, which took a hundred times as long.
//
// The handshake of CURVE stays as it is, and gives each connection a key of its own, which ZeroMQ
// then hands to crypto_box_afternm with every message and a nonce that counts them. A sealed
// message is, as CURVE has it, "\x07MESSAGE", 8 bytes of the nonce, a tag of 16, and the text,
// whose first byte has the message's flags. One that is not the next after the last of its
// connection is not opened, which ends that connection: nobody may take one out unnoticed, but for
// the first ones of a connection, whose loss stops a job at most.
#pragma once

#include "security/slots.h"
#include "security/zeromq.h"

namespace kvstore_ext {

// Notes the slots through which messages are sealed and opened. To be called once; throws
// std::runtime_error where the library has not got these functions, or there is no libcrypto.
void SealMessages(Slots* slots);

}  // namespace kvstore_ext
