#include "security/job_sockets.h"

#include <unistd.h>

#include <cstring>

namespace kvstore_ext {
namespace {

// Bytes of a message at most: the host's memory. ZeroMQ 4.2.2 adds a message's announced size to an
// address, which without a limit wraps (CVE-2019-6250), and makes room for it before a byte of it
// has come, or its sender has shown a key.
int64_t MostMessage() {
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return memory > 0 ? memory : int64_t{1} << 40;
}

using SocketFunction = int(void* socket, const char* address);

SocketFunction* real_bind;
SocketFunction* real_connect;
uint8_t job_secret[kCurveKeyBytes];
uint8_t job_public[kCurveKeyBytes];

bool SetKey(void* socket, int option, const uint8_t* key) {
  return ZeroMQ::Get().set_option(socket, option, key, kCurveKeyBytes) == 0;
}

bool Bound(void* socket) {
  const int64_t most = MostMessage();
  return ZeroMQ::Get().set_option(socket, kZmqMaxMessageSize, &most, sizeof(most)) == 0;
}

// A socket with a domain, whose name says nothing, takes no connection of ZeroMQ's protocols 1 and
// 2: version 4.2.2 reads their large messages into a buffer of 8 kB (CVE-2021-20235). With CURVE it
// takes none anyway.
bool Hardened(void* socket) {
  constexpr char kDomain[] = "kvstore_ext";
  return Bound(socket) &&
         ZeroMQ::Get().set_option(socket, kZmqZapDomain, kDomain, sizeof(kDomain) - 1) == 0;
}

int BindHardened(void* socket, const char* address) {
  return Hardened(socket) ? real_bind(socket, address) : -1;
}

int ConnectHardened(void* socket, const char* address) {
  return Hardened(socket) ? real_connect(socket, address) : -1;
}

int BindSocket(void* socket, const char* address) {
  const int server = 1;
  if (!Bound(socket) ||
      ZeroMQ::Get().set_option(socket, kZmqCurveServer, &server, sizeof(server)) != 0 ||
      !SetKey(socket, kZmqCurveSecretKey, job_secret)) {
    return -1;
  }
  return real_bind(socket, address);
}

int ConnectSocket(void* socket, const char* address) {
  uint8_t own_public[kCurveKeyBytes];
  uint8_t own_secret[kCurveKeyBytes];
  ZeroMQ::Get().keypair(own_public, own_secret);
  if (!Bound(socket) || !SetKey(socket, kZmqCurveServerKey, job_public) ||
      !SetKey(socket, kZmqCurvePublicKey, own_public) ||
      !SetKey(socket, kZmqCurveSecretKey, own_secret)) {
    return -1;
  }
  return real_connect(socket, address);
}

}  // namespace

void HardenSockets(Slots* slots) {
  slots->Replace("zmq_bind", &BindHardened, &real_bind);
  slots->Replace("zmq_connect", &ConnectHardened, &real_connect);
}

void KeySockets(const uint8_t* secret, Slots* slots) {
  std::memcpy(job_secret, secret, sizeof(job_secret));
  ZeroMQ::Get().public_key(job_public, job_secret);
  slots->Replace("zmq_bind", &BindSocket, &real_bind);
  slots->Replace("zmq_connect", &ConnectSocket, &real_connect);
}

}  // namespace kvstore_ext
