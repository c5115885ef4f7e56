#include "codecs/levels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "codecs/kernels/kernels.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr size_t kLanesOfWords = 64;
constexpr size_t kMostBytes = 11;  // the least with which 64 workers never waste over 3 %
constexpr double kWaste = 1.02;
constexpr int kMostWorkers = 1 << 20;

// The most digits for which base^digits - 1 fits into so many bytes.
size_t CountDigits(uint64_t base, size_t bytes) {
  unsigned __int128 room = (static_cast<unsigned __int128>(1) << 8 * bytes) - 1;
  size_t digits = 0;
  // base^digits - 1 is base - 1, plus base times the same for a digit less.
  for (; room >= base - 1; ++digits) room = (room - (base - 1)) / base;
  return digits;
}

uint64_t Power(uint64_t base, size_t exponent) {
  uint64_t power = 1;
  while (exponent-- > 0) power *= base;
  return power;
}

template <size_t kBytes>
using Word = std::conditional_t<(kBytes > 8), unsigned __int128, uint64_t>;

// A word is low + high * span; without a span there is no high part.
template <size_t kBytes>
void StoreWords(const double* low, const double* high, uint64_t span, size_t count, char* bytes) {
  for (size_t j = 0; j < count; ++j) {
    Word<kBytes> word = static_cast<int64_t>(low[j]);
    if (span > 0) word += static_cast<Word<kBytes>>(static_cast<int64_t>(high[j])) * span;
    std::memcpy(bytes + j * kBytes, &word, kBytes);
  }
}

template <size_t kBytes>
Word<kBytes> LoadWord(const char* from) {
  Word<kBytes> word = LoadBytes<std::min<size_t>(kBytes, 8)>(from);
  if constexpr (kBytes > 8) word |= Word<kBytes>{LoadBytes<kBytes - 8>(from + 8)} << 64;
  return word;
}

template <size_t kBytes>
void LoadWords(const char* bytes, uint64_t span, size_t count, double* low, double* high) {
  for (size_t j = 0; j < count; ++j) {
    const Word<kBytes> word = LoadWord<kBytes>(bytes + j * kBytes);
    const auto above = static_cast<uint64_t>(span > 0 ? word / span : 0);
    high[j] = static_cast<double>(static_cast<int64_t>(above));
    low[j] = static_cast<double>(static_cast<int64_t>(word - Word<kBytes>{above} * span));
  }
}

using Storing = void (*)(const double*, const double*, uint64_t, size_t, char*);
using Loading = void (*)(const char*, uint64_t, size_t, double*, double*);
constexpr Storing kStoreWords[] = {nullptr,       StoreWords<1>, StoreWords<2>,  StoreWords<3>,
                                   StoreWords<4>, StoreWords<5>, StoreWords<6>,  StoreWords<7>,
                                   StoreWords<8>, StoreWords<9>, StoreWords<10>, StoreWords<11>};
constexpr Loading kLoadWords[] = {nullptr,      LoadWords<1>, LoadWords<2>,  LoadWords<3>,
                                  LoadWords<4>, LoadWords<5>, LoadWords<6>,  LoadWords<7>,
                                  LoadWords<8>, LoadWords<9>, LoadWords<10>, LoadWords<11>};

}  // namespace

Levels::Levels(int workers) : workers_(workers) {
  if (workers < 1 || workers > kMostWorkers) {
    throw std::invalid_argument("levels for " + std::to_string(workers) +
                                " workers; there may be 1 to " + std::to_string(kMostWorkers));
  }
  const uint64_t base = 2 * static_cast<uint64_t>(workers) + 1;
  double least_bits = 0;
  for (size_t bytes = 1; bytes <= kMostBytes; ++bytes) {
    const size_t digits = CountDigits(base, bytes);
    if (digits == 0) continue;
    const double bits = 8.0 * bytes / digits;
    if (word_digits_ == 0 || bits < least_bits) {
      least_bits = bits;
      word_bytes_ = bytes;
      word_digits_ = digits;
    }
    if (bits <= std::log2(base) * kWaste) break;
  }
  low_digits_ = word_bytes_ <= 6 ? word_digits_ : (word_digits_ + 1) / 2;
  low_span_ = low_digits_ < word_digits_ ? Power(base, low_digits_) : 0;
}

size_t Levels::EncodedBytes(size_t elements) const {
  const size_t block = kLanesOfWords * word_digits_;
  return (elements / block * kLanesOfWords + DivideUp(elements % block, word_digits_)) *
         word_bytes_;
}

void Levels::EncodeBlock(const float* sum, size_t elements, size_t lanes, float scaler,
                         char* bytes) const {
  double low[kLanesOfWords];
  double high[kLanesOfWords];
  const float bound = scaler > 0 ? static_cast<float>(workers_) : 0;
  kernels().join_digits(sum, elements, lanes, low_digits_, scaler, bound, workers_, low);
  const size_t split = std::min(elements, low_digits_ * lanes);
  kernels().join_digits(sum + split, elements - split, lanes, word_digits_ - low_digits_, scaler,
                        bound, workers_, high);
  kStoreWords[word_bytes_](low, high, low_span_, lanes, bytes);
}

void Levels::DecodeBlock(const char* bytes, size_t elements, size_t lanes, float scaler,
                         float* out) const {
  double low[kLanesOfWords];
  double high[kLanesOfWords];
  kLoadWords[word_bytes_](bytes, low_span_, lanes, low, high);
  const size_t split = std::min(elements, low_digits_ * lanes);
  kernels().split_digits(low, out, split, lanes, low_digits_, scaler, workers_);
  kernels().split_digits(high, out + split, elements - split, lanes, word_digits_ - low_digits_,
                         scaler, workers_);
  double left = 0;
  for (size_t j = 0; j < lanes; ++j) left += low[j] + high[j];
  if (left > 0) RefuseBytes("terngrad", "a word with more digits than it has room for");
}

void Levels::Encode(const float* sum, size_t elements, float scaler, char* bytes) const {
  const size_t block = kLanesOfWords * word_digits_;
  for (; elements >= block; elements -= block, sum += block) {
    EncodeBlock(sum, block, kLanesOfWords, scaler, bytes);
    bytes += kLanesOfWords * word_bytes_;
  }
  EncodeBlock(sum, elements, DivideUp(elements, word_digits_), scaler, bytes);
}

void Levels::Decode(const char* bytes, size_t elements, float scaler, float* out) const {
  const size_t block = kLanesOfWords * word_digits_;
  for (; elements >= block; elements -= block, out += block) {
    DecodeBlock(bytes, block, kLanesOfWords, scaler, out);
    bytes += kLanesOfWords * word_bytes_;
  }
  DecodeBlock(bytes, elements, DivideUp(elements, word_digits_), scaler, out);
}

}  // namespace kvstore_ext
