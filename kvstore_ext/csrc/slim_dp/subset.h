// Some of a slice's elements: the core, or what a worker communicates of the slice in a round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/buffer.h"
#include "support/wire.h"

namespace kvstore_ext {

// A set of element numbers below `elements`, a bit each.
class Subset {
 public:
  static constexpr size_t kWordBits = 64;

  Subset() = default;
  explicit Subset(size_t elements, bool all = false);

  // From what ToBuffer made. Throws std::invalid_argument for bytes that are no set of so many.
  Subset(size_t elements, const Buffer& bytes);

  size_t elements() const { return elements_; }
  size_t count() const { return count_; }
  bool Has(size_t element) const {
    return (words_[element / kWordBits] >> (element % kWordBits) & 1) != 0;
  }

  // Without a branch, since for drawn elements nobody could foretell it.
  void Insert(size_t element) {
    count_ += Has(element) ? 0 : 1;
    words_[element / kWordBits] |= uint64_t{1} << element % kWordBits;
  }
  void Remove(size_t element) {
    count_ -= Has(element) ? 1 : 0;
    words_[element / kWordBits] &= ~(uint64_t{1} << element % kWordBits);
  }

  // Of so many elements and these members, and of no other set but by chance.
  uint64_t signature() const;

  // As it travels, of so many elements.
  static size_t BytesOf(size_t elements) {
    return DivideUp(elements, kWordBits) * sizeof(uint64_t);
  }

  // The bits, element 0 the lowest of the first byte.
  Buffer ToBuffer() const;

  // Calls found(element) for the members in order.
  template <typename Found>
  void ForEach(Found found) const {
    for (size_t word = 0; word < words_.size(); ++word) {
      for (uint64_t rest = words_[word]; rest != 0; rest &= rest - 1) {
        found(word * kWordBits + static_cast<size_t>(__builtin_ctzll(rest)));
      }
    }
  }

 private:
  size_t elements_ = 0;
  size_t count_ = 0;
  std::vector<uint64_t> words_;
};

// The core and `count` other elements, drawn uniformly without replacement from outside it; the
// same for the same stream, on every machine. Takes time by the number drawn, not by the elements,
// as long as not nearly all are in the core. Throws std::invalid_argument where there are fewer.
Subset Explore(const Subset& core, size_t count, uint64_t stream);

// How many of `drawn` elements, taken without replacement from `all`, fall among `part` of them:
// hypergeometric, drawn by inversion from the stream's number `position`.
// Preconditions: part <= all, drawn <= all.
size_t DrawShare(size_t all, size_t part, size_t drawn, uint64_t stream, uint64_t position);

}  // namespace kvstore_ext
