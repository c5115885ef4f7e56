#include "codecs/select_largest.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "codecs/kernels/kernels.h"
#include "support/float16.h"

namespace kvstore_ext {
namespace {

constexpr size_t kSample = 16384;  // elements, from all over the values
constexpr size_t kChunk = 4096;    // elements searched at a time

// A magnitude that a little more than `count` of the values reach, as far as a sample tells.
int32_t Estimate(const float* values, size_t elements, size_t count) {
  const size_t step = std::max<size_t>(1, elements / kSample + (elements % kSample > 0 ? 1 : 0));
  std::vector<int32_t> sample;
  sample.reserve(kSample);
  for (size_t i = 0; i < elements; i += step) sample.push_back(MagnitudeBits(values[i]));
  const double expected = static_cast<double>(count) / elements * sample.size();
  // The number of sampled elements among the largest strays by about its square root.
  const auto rank = static_cast<size_t>(expected + 4 * std::sqrt(expected) + 4);
  if (rank >= sample.size()) return 0;
  std::nth_element(sample.begin(), sample.begin() + rank, sample.end(), std::greater<int32_t>());
  return sample[rank];
}

// Calls found(index, magnitude) for the values that reach a magnitude, in order.
template <typename Found>
void ForEach(const float* values, size_t elements, int32_t least, Found found) {
  uint32_t within[kChunk];
  for (size_t begin = 0; begin < elements; begin += kChunk) {
    const size_t length = std::min(kChunk, elements - begin);
    const size_t count = kernels().find(values + begin, length, least, within);
    for (size_t i = 0; i < count; ++i) {
      found(begin + within[i], MagnitudeBits(values[begin + within[i]]));
    }
  }
}

std::vector<int32_t> MagnitudesFrom(const float* values, size_t elements, int32_t least) {
  std::vector<int32_t> magnitudes;
  ForEach(values, elements, least,
          [&](size_t, int32_t magnitude) { magnitudes.push_back(magnitude); });
  return magnitudes;
}

}  // namespace

std::vector<uint64_t> SelectLargest(const float* values, size_t elements, size_t count) {
  std::vector<uint64_t> selected;
  if (count == 0) return selected;
  selected.reserve(count);
  // Zeros are never looked for: in a sparse gradient they would be nearly all there is.
  const int32_t estimate = std::max(1, Estimate(values, elements, count));
  std::vector<int32_t> magnitudes = MagnitudesFrom(values, elements, estimate);
  if (magnitudes.size() < count && estimate > 1) magnitudes = MagnitudesFrom(values, elements, 1);

  int32_t least = 0;  // the smallest magnitude that is selected, and how many of those
  size_t equal = count - std::min(count, magnitudes.size());
  if (magnitudes.size() >= count) {
    const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<int32_t>());
    least = *last;
    equal = count - std::count_if(magnitudes.begin(), last, [&](int32_t m) { return m > least; });
  }
  ForEach(values, elements, least, [&](size_t i, int32_t magnitude) {
    if (magnitude == least) {
      if (equal == 0) return;
      --equal;
    }
    selected.push_back(i);
  });
  return selected;
}

}  // namespace kvstore_ext
