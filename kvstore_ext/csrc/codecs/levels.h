// Sums of ternary digits on their way back to the workers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvstore_ext {

// Packs elements that are whole multiples of one scaler, from -workers to workers times it, as
// digits in the base 2 * workers + 1: as many as fit into words of 1 to 11 bytes, the shortest
// words that waste at most two percent, or else those that waste least. Little endian.
//
// 64 words after each other have the elements of a block: word j the elements j, j + 64, and so on,
// the first one in the lowest digit. Of the m elements left, ceil(m / digits) words have every
// ceil(m / digits)th one.
class Levels {
 public:
  // Throws std::invalid_argument for less than one worker, or more than 2^20.
  explicit Levels(int workers);

  size_t EncodedBytes(size_t elements) const;
  double bytes_per_element() const { return static_cast<double>(word_bytes_) / word_digits_; }

  // `bytes` has room for EncodedBytes. What lies outside is sent as the nearest level; all as zero
  // where the scaler is.
  void Encode(const float* sum, size_t elements, float scaler, char* bytes) const;

  // out[i] = scaler * level. Throws std::invalid_argument for a word with more digits than fit.
  void Decode(const char* bytes, size_t elements, float scaler, float* out) const;

 private:
  void EncodeBlock(const float* sum, size_t elements, size_t lanes, float scaler,
                   char* bytes) const;
  void DecodeBlock(const char* bytes, size_t elements, size_t lanes, float scaler,
                   float* out) const;

  const int workers_;
  size_t word_bytes_ = 0;
  size_t word_digits_ = 0;
  // A word too long for a floating-point number is low + high * low_span_, each with digits of its
  // own.
  size_t low_digits_ = 0;  // how many `low` has: all of a word that is not split
  uint64_t low_span_ = 0;  // the value of the first digit's place in `high`; 0 where there is none
};

}  // namespace kvstore_ext
