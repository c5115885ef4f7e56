// The cipher of messages: AES-256-GCM, of the libcrypto that is found at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace kvstore_ext {

// Bytes to seal or to open, and where the result goes: to another place, or to the same.
struct CipherPart {
  const uint8_t* from;
  uint8_t* to;
  size_t bytes;
};

// Seals and opens messages with one key each. Called by any thread, each of which has a state of
// its own.
class MessageCipher {
 public:
  static constexpr size_t kKeyBytes = 32;
  static constexpr size_t kNonceBytes = 12;
  static constexpr size_t kTagBytes = 16;

  // Finds libcrypto, at the first call, and keeps it. Throws std::runtime_error where there is
  // none, or one without these functions: there is no other cipher to fall back to.
  static const MessageCipher& Get();

  // The name of the library that was found.
  const std::string& library() const { return library_; }

  // Seals the parts, one after the other, and writes the tag. A nonce must never come again with
  // the same key. False where libcrypto refuses.
  bool Seal(const uint8_t* key, const uint8_t* nonce, std::initializer_list<CipherPart> parts,
            uint8_t* tag) const;

  // Opens the parts. False where the tag is not theirs: what has been written then means nothing.
  bool Open(const uint8_t* key, const uint8_t* nonce, std::initializer_list<CipherPart> parts,
            const uint8_t* tag) const;

 private:
  MessageCipher();

  std::string library_;
};

}  // namespace kvstore_ext
