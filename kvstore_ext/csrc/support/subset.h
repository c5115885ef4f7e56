// Some of many elements: those that a method sends of a key, or a core.
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

  // Of these bits, 64 elements a word. Precondition: none is above the last element.
  Subset(size_t elements, std::vector<uint64_t> words);

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
    ForEachIn(0, elements_, found);
  }

  // For those from one element on and before another. Precondition: begin <= end <= elements().
  template <typename Found>
  void ForEachIn(size_t begin, size_t end, Found found) const {
    for (size_t word = begin / kWordBits; word < DivideUp(end, kWordBits); ++word) {
      for (uint64_t rest = WordIn(word, begin, end); rest != 0; rest &= rest - 1) {
        found(word * kWordBits + static_cast<size_t>(__builtin_ctzll(rest)));
      }
    }
  }

  // The values of the members, in order.
  template <typename Value>
  void TakeOut(const Value* values, Value* taken) const {
    ForEach([&](size_t element) { *taken++ = values[element]; });
  }

  // How many these are.
  size_t CountIn(size_t begin, size_t end) const {
    size_t count = 0;
    for (size_t word = begin / kWordBits; word < DivideUp(end, kWordBits); ++word) {
      count += __builtin_popcountll(WordIn(word, begin, end));
    }
    return count;
  }

 private:
  uint64_t WordIn(size_t word, size_t begin, size_t end) const {
    const size_t first = word * kWordBits;
    uint64_t members = words_[word];
    if (begin > first) members &= ~uint64_t{0} << (begin - first);
    if (end < first + kWordBits) members &= ~uint64_t{0} >> (first + kWordBits - end);
    return members;
  }

  size_t elements_ = 0;
  size_t count_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace kvstore_ext
