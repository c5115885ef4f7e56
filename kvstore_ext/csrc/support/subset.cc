#include "support/subset.h"

#include <cstring>
#include <utility>

#include "support/random.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr uint64_t kSignatureSeed = 0x736c696d64700000ULL;

}  // namespace

Subset::Subset(size_t elements, bool all)
    : elements_(elements),
      count_(all ? elements : 0),
      words_(DivideUp(elements, kWordBits), all ? ~uint64_t{0} : 0) {
  if (all && elements % kWordBits > 0) words_.back() >>= kWordBits - elements % kWordBits;
}

Subset::Subset(size_t elements, std::vector<uint64_t> words)
    : elements_(elements), words_(std::move(words)) {
  for (const uint64_t word : words_) count_ += __builtin_popcountll(word);
}

Subset::Subset(size_t elements, const Buffer& bytes)
    : elements_(elements), words_(DivideUp(elements, kWordBits)) {
  CheckSize("subset", bytes, elements, words_.size() * sizeof(uint64_t));
  if (bytes.size > 0) std::memcpy(words_.data(), bytes.data.get(), bytes.size);
  if (elements % kWordBits > 0 && words_.back() >> elements % kWordBits != 0) {
    RefuseBytes("subset", "members above the last element");
  }
  for (const uint64_t word : words_) count_ += __builtin_popcountll(word);
}

uint64_t Subset::signature() const {
  uint64_t signature = Mix(kSignatureSeed ^ elements_);
  for (const uint64_t word : words_) signature = Mix(signature ^ word);
  return signature;
}

Buffer Subset::ToBuffer() const {
  Buffer bytes = Buffer::Allocate(words_.size() * sizeof(uint64_t));
  if (bytes.size > 0) std::memcpy(bytes.data.get(), words_.data(), bytes.size);
  return bytes;
}

}  // namespace kvstore_ext
