#include "security/curve_handshake.h"

#include <cerrno>
#include <mutex>
#include <set>

#include "security/zeromq.h"

namespace kvstore_ext {
namespace {

// Bytes of a command for whose box there is room, as curve_server.cpp and curve_client.cpp of
// ZeroMQ 4.2.2 have it: 400 behind 113, and 272 behind 14.
constexpr size_t kMostInitiate = 513;
constexpr size_t kMostReady = 286;

using ReadyFunction = int(void* client, const uint8_t* command, size_t bytes);
using DeleteFunction = void(void* client);

CodeFunction* real_initiate;  // zmq::curve_server_t reads the client's last word
CodeFunction* real_produce;   // zmq::curve_client_t makes it
ReadyFunction* real_ready;    // and reads the server's
DeleteFunction* real_delete;

std::mutex mutex;                 // of all below
std::set<const void*> initiated;  // clients whose last word has left

int Refuse() {
  errno = EPROTO;
  return -1;
}

int ProcessInitiate(void* server, ZmqMessage* command) {
  if (ZeroMQ::Get().msg_size(command) > kMostInitiate) return Refuse();
  return real_initiate(server, command);
}

int ProduceInitiate(void* client, ZmqMessage* command) {
  const int result = real_produce(client, command);
  std::lock_guard<std::mutex> lock(mutex);
  if (result == 0) initiated.insert(client);
  return result;
}

int ProcessReady(void* client, const uint8_t* command, size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (bytes > kMostReady || initiated.erase(client) == 0) return Refuse();
  }
  return real_ready(client, command, bytes);
}

void DeleteClient(void* client) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    initiated.erase(client);
  }
  real_delete(client);
}

}  // namespace

void CheckHandshakes(Slots* slots) {
  slots->Replace("_ZN3zmq14curve_server_t16process_initiateEPNS_5msg_tE", &ProcessInitiate,
                 &real_initiate);
  slots->Replace("_ZN3zmq14curve_client_t16produce_initiateEPNS_5msg_tE", &ProduceInitiate,
                 &real_produce);
  slots->Replace("_ZN3zmq14curve_client_t13process_readyEPKhm", &ProcessReady, &real_ready);
  slots->Replace("_ZN3zmq14curve_client_tD0Ev", &DeleteClient, &real_delete);
}

}  // namespace kvstore_ext
