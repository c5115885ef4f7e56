#include "security/message_cipher.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "support/symbols.h"

namespace kvstore_ext {
namespace {

// Of OpenSSL's interface, which is the same in 1.1 and 3.
constexpr const char* kLibraries[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
constexpr int kGetTag = 0x10;             // EVP_CTRL_AEAD_GET_TAG
constexpr int kSetTag = 0x11;             // EVP_CTRL_AEAD_SET_TAG
constexpr size_t kMostBytes = 1UL << 30;  // of a call, whose sizes are ints

using Init = int(void* context, const void* cipher, void* engine, const uint8_t* key,
                 const uint8_t* nonce);
using Update = int(void* context, uint8_t* to, int* written, const uint8_t* from, int bytes);
using Final = int(void* context, uint8_t* to, int* written);

struct LibCrypto {
  void* (*context_new)();
  void (*context_free)(void* context);
  int (*control)(void* context, int type, int argument, void* pointer);
  const void* (*aes_256_gcm)();
  Init* seal_init;
  Update* seal_update;
  Final* seal_final;
  Init* open_init;
  Update* open_update;
  Final* open_final;
} crypto;

// A thread's state for one direction. Preparing a key costs more than the shortest messages, so it
// is kept while messages with the same one follow.
class Context {
 public:
  explicit Context(Init* init) : init_(init), context_(crypto.context_new()) {
    ready_ = context_ != nullptr &&
             init_(context_, crypto.aes_256_gcm(), nullptr, nullptr, nullptr) == 1;
  }
  ~Context() { crypto.context_free(context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Begins a message; null where libcrypto refuses.
  void* Begin(const uint8_t* key, const uint8_t* nonce) {
    if (!ready_) return nullptr;
    const bool same = has_key_ && std::memcmp(key, key_, sizeof(key_)) == 0;
    has_key_ = init_(context_, nullptr, nullptr, same ? nullptr : key, nonce) == 1;
    if (!has_key_) return nullptr;
    std::memcpy(key_, key, sizeof(key_));
    return context_;
  }

 private:
  Init* const init_;
  void* const context_;
  bool ready_ = false;
  bool has_key_ = false;
  uint8_t key_[MessageCipher::kKeyBytes];
};

bool Convert(Update* update, void* context, std::initializer_list<CipherPart> parts) {
  for (const CipherPart& part : parts) {
    for (size_t done = 0; done < part.bytes;) {
      const size_t bytes = std::min(kMostBytes, part.bytes - done);
      int written = 0;
      if (update(context, part.to + done, &written, part.from + done, static_cast<int>(bytes)) !=
          1) {
        return false;
      }
      done += bytes;
    }
  }
  return true;
}

}  // namespace

const MessageCipher& MessageCipher::Get() {
  static const MessageCipher cipher;
  return cipher;
}

MessageCipher::MessageCipher() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    library_ = name;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    throw std::runtime_error(
        std::string("neither ") + kLibraries[0] + " nor " + kLibraries[1] +
        " can be loaded: install OpenSSL 1.1.1 or newer (Debian package: libssl3)");
  }
  Bind(library, library_, "EVP_CIPHER_CTX_new", &crypto.context_new);
  Bind(library, library_, "EVP_CIPHER_CTX_free", &crypto.context_free);
  Bind(library, library_, "EVP_CIPHER_CTX_ctrl", &crypto.control);
  Bind(library, library_, "EVP_aes_256_gcm", &crypto.aes_256_gcm);
  Bind(library, library_, "EVP_EncryptInit_ex", &crypto.seal_init);
  Bind(library, library_, "EVP_EncryptUpdate", &crypto.seal_update);
  Bind(library, library_, "EVP_EncryptFinal_ex", &crypto.seal_final);
  Bind(library, library_, "EVP_DecryptInit_ex", &crypto.open_init);
  Bind(library, library_, "EVP_DecryptUpdate", &crypto.open_update);
  Bind(library, library_, "EVP_DecryptFinal_ex", &crypto.open_final);
}

bool MessageCipher::Seal(const uint8_t* key, const uint8_t* nonce,
                         std::initializer_list<CipherPart> parts, uint8_t* tag) const {
  thread_local Context own(crypto.seal_init);
  void* context = own.Begin(key, nonce);
  uint8_t rest[kTagBytes];
  int written = 0;
  return context != nullptr && Convert(crypto.seal_update, context, parts) &&
         crypto.seal_final(context, rest, &written) == 1 &&
         crypto.control(context, kGetTag, kTagBytes, tag) == 1;
}

bool MessageCipher::Open(const uint8_t* key, const uint8_t* nonce,
                         std::initializer_list<CipherPart> parts, const uint8_t* tag) const {
  thread_local Context own(crypto.open_init);
  void* context = own.Begin(key, nonce);
  uint8_t rest[kTagBytes];
  std::memcpy(rest, tag, sizeof(rest));
  int written = 0;
  return context != nullptr && Convert(crypto.open_update, context, parts) &&
         crypto.control(context, kSetTag, kTagBytes, rest) == 1 &&
         crypto.open_final(context, rest, &written) == 1;
}

}  // namespace kvstore_ext
