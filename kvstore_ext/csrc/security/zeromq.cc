#include "security/zeromq.h"

#include <stdexcept>
#include <string>

#include "support/symbols.h"

namespace kvstore_ext {

namespace {

ZeroMQ loaded;

}  // namespace

const ZeroMQ& ZeroMQ::Load(void* library) {
  const auto bind = [library](const char* symbol, auto** function) {
    Bind(library, "libmxnet.so", symbol, function);
  };
  bind("zmq_msg_init_size", &loaded.msg_init_size);
  bind("zmq_msg_move", &loaded.msg_move);
  bind("zmq_msg_close", &loaded.msg_close);
  bind("zmq_msg_data", &loaded.msg_data);
  bind("zmq_msg_size", &loaded.msg_size);
  bind("_ZN3zmq5msg_t5flagsEv", &loaded.msg_flags);
  bind("_ZN3zmq5msg_t9set_flagsEh", &loaded.msg_set_flags);
  bind("zmq_setsockopt", &loaded.set_option);
  bind("zmq_has", &loaded.has);
  bind("crypto_box_keypair", &loaded.keypair);
  bind("crypto_scalarmult_base", &loaded.public_key);
  if (loaded.has("curve") != 1) {
    throw std::runtime_error("libmxnet.so's ZeroMQ has no CURVE");
  }
  return loaded;
}

const ZeroMQ& ZeroMQ::Get() { return loaded; }

}  // namespace kvstore_ext
