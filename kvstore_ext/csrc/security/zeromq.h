// What is used of the ZeroMQ inside libmxnet.so, version 4.2.2, and of its NaCl.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvstore_ext {

// A zmq_msg_t, which is also what the inside of ZeroMQ calls zmq::msg_t.
struct ZmqMessage {
  alignas(void*) unsigned char bytes[64];
};

// Options of sockets, and flags of messages.
constexpr int kZmqIdentity = 5;
constexpr int kZmqMaxMessageSize = 22;
constexpr int kZmqCurveServer = 47;
constexpr int kZmqCurvePublicKey = 48;
constexpr int kZmqCurveSecretKey = 49;
constexpr int kZmqCurveServerKey = 50;
constexpr int kZmqZapDomain = 55;
constexpr unsigned char kZmqMore = 1;
constexpr unsigned char kZmqMoreOrCommand = 3;

// As NaCl has its boxes: plain bytes begin with 32 zeros; sealed ones with 16, and a tag of 16.
constexpr size_t kCurveKeyBytes = 32;
constexpr size_t kBoxTag = 16;
constexpr size_t kBoxText = 32;

using BoxFunction = int(uint8_t* to, const uint8_t* from, unsigned long long bytes,
                        const uint8_t* nonce, const uint8_t* key);

// Of a mechanism: zmq::curve_client_t and zmq::curve_server_t encode and decode a message in place.
using CodeFunction = int(void* mechanism, ZmqMessage* message);

struct ZeroMQ {
  int (*msg_init_size)(ZmqMessage* message, size_t bytes);
  int (*msg_move)(ZmqMessage* to, ZmqMessage* from);
  int (*msg_close)(ZmqMessage* message);
  void* (*msg_data)(ZmqMessage* message);
  size_t (*msg_size)(const ZmqMessage* message);
  unsigned char (*msg_flags)(ZmqMessage* message);
  void (*msg_set_flags)(ZmqMessage* message, unsigned char flags);
  int (*set_option)(void* socket, int option, const void* value, size_t bytes);
  int (*has)(const char* capability);
  int (*keypair)(uint8_t* public_key, uint8_t* secret_key);
  int (*public_key)(uint8_t* public_key, const uint8_t* secret_key);

  // Binds all of them; throws std::runtime_error where the library lacks one, or CURVE.
  static const ZeroMQ& Load(void* library);

  // What Load has found.
  static const ZeroMQ& Get();
};

}  // namespace kvstore_ext
