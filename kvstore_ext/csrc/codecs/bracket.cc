#include "codecs/bracket.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "codecs/kernels/kernels.h"
#include "support/float16.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr size_t kChunk = 4096;  // elements divided at a time, of whole words

int32_t NthLargest(std::vector<int32_t>* magnitudes, double rank) {
  const auto nth = magnitudes->begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(magnitudes->begin(), nth, magnitudes->end(), std::greater<int32_t>());
  return *nth;
}

}  // namespace

size_t AddSample(const float* values, const float* updates, float c, size_t elements, size_t first,
                 size_t step, std::vector<int32_t>* sample) {
  size_t i = first;
  for (; i < elements; i += step) {
    const float added = updates == nullptr ? 0 : c * std::fabs(updates[i]);
    sample->push_back(MagnitudeBits(std::fabs(values[i]) + added));
  }
  return i - elements;
}

Bracket BracketOf(std::vector<int32_t> sample, uint64_t elements, uint64_t count) {
  const double share = elements == 0 ? 0 : static_cast<double>(count) / elements;
  const double expected = share * sample.size();
  // A random sample strays by more than four deviations less than once in ten thousand times; four
  // elements more are for small counts.
  const double strays = 4 * std::sqrt(expected * (1 - share)) + 4;
  Bracket bracket;
  bracket.least = 1;
  if (expected + strays < sample.size()) {
    bracket.least = std::max(1, NthLargest(&sample, expected + strays));
  }
  if (expected - strays >= 0) {
    bracket.most = std::max(bracket.least, NthLargest(&sample, expected - strays));
  }
  return bracket;
}

Divided Divide(const float* values, const float* updates, float c, size_t elements,
               const Bracket& bracket) {
  Divided divided;
  std::vector<uint64_t> above(DivideUp(elements, Subset::kWordBits));
  uint32_t within[kChunk];
  int32_t bits[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t length = std::min(kChunk, elements - begin);
    const float* own = updates == nullptr ? nullptr : updates + begin;
    const size_t count =
        kernels().divide(values + begin, own, c, length, bracket.least, bracket.most,
                         above.data() + begin / Subset::kWordBits, within, bits);
    divided.bits.insert(divided.bits.end(), bits, bits + count);
    for (size_t i = 0; i < count; ++i) divided.within.push_back(begin + within[i]);
  }
  divided.above = Subset(elements, std::move(above));
  return divided;
}

}  // namespace kvstore_ext
