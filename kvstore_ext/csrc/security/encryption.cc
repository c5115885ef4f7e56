#include "security/encryption.h"

#include <dlfcn.h>

#include <stdexcept>

#include "security/curve_handshake.h"
#include "security/foreign_messages.h"
#include "security/job_sockets.h"
#include "security/message_cipher.h"
#include "security/sealed_messages.h"
#include "security/slots.h"
#include "security/strangers.h"
#include "security/zeromq.h"

namespace kvstore_ext {
namespace {

std::string encrypted_with;  // the secret; empty before

void* Open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    throw std::runtime_error("mxnet has not loaded " + path + " in this process");
  }
  return library;
}

}  // namespace

std::vector<std::string> Harden(const std::string& path) {
  // What encrypts hardens as well, and must keep its slots: a package may be imported twice.
  if (!encrypted_with.empty()) return {};
  void* library = Open(path);
  std::vector<std::string> missing;
  for (const auto harden : {&HardenSockets, &DropForeignMessages}) {
    try {
      ZeroMQ::Load(library);
      Slots slots(library);
      harden(&slots);
      slots.Write();
    } catch (const std::runtime_error& error) {
      missing.emplace_back(error.what());
    }
  }
  return missing;
}

std::string Encrypt(const std::string& path, const std::string& secret) {
  if (secret.size() != kCurveKeyBytes) {
    throw std::invalid_argument("the sockets' secret has " + std::to_string(secret.size()) +
                                " bytes; it must have " + std::to_string(kCurveKeyBytes));
  }
  if (!encrypted_with.empty()) {
    if (encrypted_with != secret) {
      throw std::logic_error("this process has joined a job with another key before");
    }
    return CipherLibrary();
  }
  void* library = Open(path);
  ZeroMQ::Load(library);
  Slots slots(library);
  KeySockets(reinterpret_cast<const uint8_t*>(secret.data()), &slots);
  CheckHandshakes(&slots);
  SealMessages(&slots);
  CountStrangers(&slots);
  slots.Write();
  encrypted_with = secret;
  return CipherLibrary();
}

std::string CipherLibrary() { return MessageCipher::Get().library(); }

}  // namespace kvstore_ext
