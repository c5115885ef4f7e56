#include "codecs/select_largest.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "codecs/bracket.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

// With at most `count` above the bracket, and at least `count` above and within it, or all that are
// not zero.
Divided DivideAt(const float* values, size_t elements, size_t count) {
  std::vector<int32_t> sample;
  const size_t step = std::max<size_t>(1, DivideUp(elements, kBracketSample));
  sample.reserve(DivideUp(elements, step));
  AddSample(values, nullptr, 0, elements, 0, step, &sample);
  Bracket bracket = BracketOf(std::move(sample), elements, count);
  for (;;) {
    Divided divided = Divide(values, nullptr, 0, elements, bracket);
    const Bracket before = bracket;
    if (divided.above.count() > count) bracket.most = Bracket().most;
    if (divided.above.count() + divided.within.size() < count) bracket.least = 1;
    if (bracket.most == before.most && bracket.least == before.least) return divided;
  }
}

// Adds the `count` largest of those within, of equal ones the first. Precondition: 0 < count.
void InsertLargest(Divided* divided, size_t count) {
  std::vector<int32_t> bits = divided->bits;
  const auto last = bits.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(bits.begin(), last, bits.end(), std::greater<int32_t>());
  const int32_t least = *last;
  size_t equal = count - std::count_if(bits.begin(), last, [&](int32_t b) { return b > least; });
  for (size_t i = 0; i < divided->within.size(); ++i) {
    if (divided->bits[i] < least || (divided->bits[i] == least && equal == 0)) continue;
    equal -= divided->bits[i] == least ? 1 : 0;
    divided->above.Insert(divided->within[i]);
  }
}

}  // namespace

Subset SelectLargest(const float* values, size_t elements, size_t count) {
  if (count == 0) return Subset(elements);
  Divided divided = DivideAt(values, elements, count);
  const size_t left = count - divided.above.count();
  if (left > 0 && !divided.within.empty()) {
    InsertLargest(&divided, std::min(left, divided.within.size()));
  }
  Subset selected = std::move(divided.above);
  // What is left are zeros.
  for (size_t i = 0; selected.count() < count; ++i) selected.Insert(i);
  return selected;
}

}  // namespace kvstore_ext
