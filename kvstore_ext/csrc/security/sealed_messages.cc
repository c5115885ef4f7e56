#include "security/sealed_messages.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "security/message_cipher.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "\x07MESSAGE";
constexpr size_t kNameBytes = 8;
constexpr size_t kTagAt = 16;
constexpr size_t kTextAt = 32;  // in a sealed message, as in a box
// From so many bytes on a message is sealed without the copies that ZeroMQ makes of it.
constexpr size_t kLarge = 4096;

BoxFunction* nacl_seal;  // what the handshake goes on with
BoxFunction* nacl_open;
CodeFunction* client_encode;
CodeFunction* client_decode;
CodeFunction* server_encode;
CodeFunction* server_decode;

// A large message has a small one sent through ZeroMQ's own code in its place, which checks and
// counts it. When that comes to the box, it finds here what really is to be done.
struct Standin {
  ZmqMessage* large;
  ZmqMessage* result;
  bool made;
};
thread_local Standin* sealing = nullptr;
thread_local Standin* opening = nullptr;

// CURVE's nonces are 8 bytes of a counter behind 16 that say what for: the last of these differs by
// direction.
bool IsMessage(const uint8_t* nonce) { return std::memcmp(nonce, "CurveZMQMESSAGE", 15) == 0; }

void ShortNonce(const uint8_t* nonce, uint8_t* to) {
  std::memset(to, 0, MessageCipher::kNonceBytes);
  to[0] = nonce[15];
  std::memcpy(to + 4, nonce + 16, 8);
}

uint8_t* Data(ZmqMessage* message) {
  return static_cast<uint8_t*>(ZeroMQ::Get().msg_data(message));
}

bool SealLarge(Standin* standin, uint8_t flags, const uint8_t* nonce, const uint8_t* short_nonce,
               const uint8_t* key) {
  const size_t bytes = ZeroMQ::Get().msg_size(standin->large);
  if (ZeroMQ::Get().msg_init_size(standin->result, kTextAt + 1 + bytes) != 0) return false;
  standin->made = true;
  uint8_t* to = Data(standin->result);
  std::memcpy(to, kName, kNameBytes);
  std::memcpy(to + kNameBytes, nonce + 16, 8);
  return MessageCipher::Get().Seal(
      key, short_nonce,
      {{&flags, to + kTextAt, 1}, {Data(standin->large), to + kTextAt + 1, bytes}}, to + kTagAt);
}

bool OpenLarge(Standin* standin, uint8_t* flags, const uint8_t* short_nonce, const uint8_t* key) {
  const size_t bytes = ZeroMQ::Get().msg_size(standin->large) - kTextAt - 1;
  if (ZeroMQ::Get().msg_init_size(standin->result, bytes) != 0) return false;
  standin->made = true;
  const uint8_t* from = Data(standin->large);
  return MessageCipher::Get().Open(
      key, short_nonce,
      {{from + kTextAt, flags, 1}, {from + kTextAt + 1, Data(standin->result), bytes}},
      from + kTagAt);
}

int SealBox(uint8_t* to, const uint8_t* from, unsigned long long bytes, const uint8_t* nonce,
            const uint8_t* key) {
  if (!IsMessage(nonce)) return nacl_seal(to, from, bytes, nonce, key);
  uint8_t short_nonce[MessageCipher::kNonceBytes];
  ShortNonce(nonce, short_nonce);
  std::memset(to, 0, kBoxText);
  if (sealing != nullptr) {
    to[kBoxText] = 0;
    return SealLarge(sealing, from[kBoxText], nonce, short_nonce, key) ? 0 : -1;
  }
  const bool sealed = MessageCipher::Get().Seal(
      key, short_nonce, {{from + kBoxText, to + kBoxText, bytes - kBoxText}}, to + kBoxTag);
  return sealed ? 0 : -1;
}

// Whether nothing is missing between a message and the one that its connection has brought before.
// Messages are sealed frame by frame, and ZeroMQ lets the count go on by more than one: who stands
// in between could take frames out, and a head would come before another message's body. The key
// lies in the connection, and is its own; all of a connection is received by one thread.
bool IsNext(const uint8_t* nonce, const uint8_t* key) {
  struct Last {
    std::array<uint8_t, kCurveKeyBytes> key;
    uint64_t count;
  };
  thread_local std::unordered_map<const uint8_t*, Last> lasts;
  uint64_t count = 0;
  for (int i = 16; i < 24; ++i) count = count << 8 | nonce[i];
  Last& last = lasts[key];  // zeros, at first, which are no key
  const bool known = std::memcmp(last.key.data(), key, kCurveKeyBytes) == 0;
  if (known && count != last.count + 1) return false;
  std::memcpy(last.key.data(), key, kCurveKeyBytes);
  last.count = count;
  return true;
}

int OpenBox(uint8_t* to, const uint8_t* from, unsigned long long bytes, const uint8_t* nonce,
            const uint8_t* key) {
  if (!IsMessage(nonce)) return nacl_open(to, from, bytes, nonce, key);
  if (bytes <= kBoxText || !IsNext(nonce, key)) return -1;
  uint8_t short_nonce[MessageCipher::kNonceBytes];
  ShortNonce(nonce, short_nonce);
  std::memset(to, 0, kBoxText);
  if (opening != nullptr) {
    return OpenLarge(opening, to + kBoxText, short_nonce, key) ? 0 : -1;
  }
  const bool opened = MessageCipher::Get().Open(
      key, short_nonce, {{from + kBoxText, to + kBoxText, bytes - kBoxText}}, from + kBoxTag);
  return opened ? 0 : -1;
}

int Encode(CodeFunction* encode, void* mechanism, ZmqMessage* message) {
  if (ZeroMQ::Get().msg_size(message) < kLarge) return encode(mechanism, message);
  ZmqMessage small;
  ZmqMessage sealed;
  if (ZeroMQ::Get().msg_init_size(&small, 0) != 0) std::abort();  // a size that needs no memory
  ZeroMQ::Get().msg_set_flags(&small, ZeroMQ::Get().msg_flags(message) & kZmqMoreOrCommand);
  Standin standin{message, &sealed, false};
  sealing = &standin;
  encode(mechanism, &small);  // which aborts the process where the box fails
  sealing = nullptr;
  ZeroMQ::Get().msg_close(&small);
  return ZeroMQ::Get().msg_move(message, &sealed);
}

int Decode(CodeFunction* decode, void* mechanism, ZmqMessage* message) {
  if (ZeroMQ::Get().msg_size(message) < kTextAt + kLarge) return decode(mechanism, message);
  ZmqMessage small;
  ZmqMessage opened;
  if (ZeroMQ::Get().msg_init_size(&small, kTextAt + 1) != 0) return -1;
  std::memcpy(Data(&small), Data(message), kTextAt + 1);
  Standin standin{message, &opened, false};
  opening = &standin;
  const int result = decode(mechanism, &small);
  opening = nullptr;
  const int error = errno;
  if (result == 0) {
    ZeroMQ::Get().msg_set_flags(&opened, ZeroMQ::Get().msg_flags(&small) & kZmqMoreOrCommand);
    ZeroMQ::Get().msg_move(message, &opened);
  } else if (standin.made) {
    ZeroMQ::Get().msg_close(&opened);
  }
  ZeroMQ::Get().msg_close(&small);
  errno = error;
  return result;
}

int ClientEncode(void* self, ZmqMessage* message) { return Encode(client_encode, self, message); }
int ClientDecode(void* self, ZmqMessage* message) { return Decode(client_decode, self, message); }
int ServerEncode(void* self, ZmqMessage* message) { return Encode(server_encode, self, message); }
int ServerDecode(void* self, ZmqMessage* message) { return Decode(server_decode, self, message); }

}  // namespace

void SealMessages(Slots* slots) {
  MessageCipher::Get();
  slots->Replace("crypto_box_afternm", &SealBox, &nacl_seal);
  slots->Replace("crypto_box_open_afternm", &OpenBox, &nacl_open);
  slots->Replace("_ZN3zmq14curve_client_t6encodeEPNS_5msg_tE", &ClientEncode, &client_encode);
  slots->Replace("_ZN3zmq14curve_client_t6decodeEPNS_5msg_tE", &ClientDecode, &client_decode);
  slots->Replace("_ZN3zmq14curve_server_t6encodeEPNS_5msg_tE", &ServerEncode, &server_encode);
  slots->Replace("_ZN3zmq14curve_server_t6decodeEPNS_5msg_tE", &ServerDecode, &server_decode);
}

}  // namespace kvstore_ext
