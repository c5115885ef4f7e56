// The cipher of messages: the bits of AES-256-GCM, and nothing that was changed on the way.
#include "security/message_cipher.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace kvstore_ext {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes FromHex(const std::string& text) {
  Bytes bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

const Bytes kKey(MessageCipher::kKeyBytes);
const Bytes kNonce(MessageCipher::kNonceBytes);

struct Sealed {
  Bytes text;
  Bytes tag = Bytes(MessageCipher::kTagBytes);
};

// Sealed in two parts, of which the first has `first` bytes.
Sealed Seal(const Bytes& plain, size_t first, const Bytes& nonce = kNonce) {
  Sealed sealed;
  sealed.text.resize(plain.size());
  EXPECT_TRUE(MessageCipher::Get().Seal(
      kKey.data(), nonce.data(),
      {{plain.data(), sealed.text.data(), first},
       {plain.data() + first, sealed.text.data() + first, plain.size() - first}},
      sealed.tag.data()));
  return sealed;
}

bool Open(const Sealed& sealed, Bytes* plain, const Bytes& nonce = kNonce) {
  plain->resize(sealed.text.size());
  return MessageCipher::Get().Open(kKey.data(), nonce.data(),
                                   {{sealed.text.data(), plain->data(), sealed.text.size()}},
                                   sealed.tag.data());
}

TEST(MessageCipher, HasTheBitsOfTheStandard) {
  // Test case 14 of McGrew and Viega, The Galois/Counter Mode of Operation.
  const Sealed sealed = Seal(Bytes(16), 0);
  EXPECT_EQ(sealed.text, FromHex("cea7403d4d606b6e074ec5d3baf39d18"));
  EXPECT_EQ(sealed.tag, FromHex("d0d1c8a799996bf0265b98b5d48ab919"));
}

TEST(MessageCipher, DoesNotSeeWhereAPartEnds) {
  Bytes plain(100'000);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<uint8_t>(i * i);
  const Sealed whole = Seal(plain, 0);
  for (const size_t first : {1UL, 15UL, 16UL, 99'999UL, 100'000UL}) {
    const Sealed sealed = Seal(plain, first);
    EXPECT_EQ(sealed.text, whole.text) << first;
    EXPECT_EQ(sealed.tag, whole.tag) << first;
  }
  Bytes opened;
  EXPECT_TRUE(Open(whole, &opened));
  EXPECT_EQ(opened, plain);
}

TEST(MessageCipher, OpensNothingThatWasChanged) {
  const Sealed sealed = Seal(Bytes(1000, 7), 1);
  Bytes opened;
  for (const size_t bit : {0UL, 3999UL, 7999UL}) {
    Sealed changed = sealed;
    changed.text[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(Open(changed, &opened)) << bit;
  }
  Sealed changed = sealed;
  changed.tag.back() ^= 0x80;
  EXPECT_FALSE(Open(changed, &opened));
  Bytes other_nonce = kNonce;
  other_nonce.back() = 1;
  EXPECT_FALSE(Open(sealed, &opened, other_nonce));
  // What came between has left nothing behind.
  EXPECT_TRUE(Open(sealed, &opened));
  EXPECT_EQ(opened, Bytes(1000, 7));
}

TEST(MessageCipher, ConvertsInPlace) {
  Bytes plain(5000, 9);
  const Sealed expected = Seal(plain, 0);
  Sealed sealed;
  EXPECT_TRUE(MessageCipher::Get().Seal(
      kKey.data(), kNonce.data(), {{plain.data(), plain.data(), plain.size()}}, sealed.tag.data()));
  EXPECT_EQ(plain, expected.text);
  EXPECT_EQ(sealed.tag, expected.tag);
}

}  // namespace
}  // namespace kvstore_ext
