#include "slim_dp/explorer.h"

#include <math.h>  // lgamma_r

#include <algorithm>
#include <stdexcept>
#include <string>

#include "support/random.h"

namespace kvstore_ext {
namespace {

// Numbers below a limit, each as likely: Lemire's multiplication (2019), which refuses the few that
// would make some likelier. Each 64 bits of the stream give two, the upper half first.
class Below {
 public:
  Below(uint64_t stream, uint32_t limit)
      : stream_(stream), limit_(limit), refused_((0U - limit) % limit) {}

  size_t Next() {
    for (;;) {
      if (next_ % 2 == 0) bits_ = Mix(stream_ + next_ / 2);
      const uint64_t product = (next_++ % 2 == 0 ? bits_ >> 32 : bits_ & UINT32_MAX) * limit_;
      if (static_cast<uint32_t>(product) >= refused_) return product >> 32;
    }
  }

 private:
  const uint64_t stream_;
  const uint32_t limit_;
  const uint32_t refused_;
  uint64_t next_ = 0;
  uint64_t bits_ = 0;
};

double LogFactorial(size_t number) {
  int sign;  // which std::lgamma would leave to all threads
  return lgamma_r(static_cast<double>(number) + 1, &sign);
}

double LogChoose(size_t all, size_t some) {
  return LogFactorial(all) - LogFactorial(some) - LogFactorial(all - some);
}

}  // namespace

Subset Explore(const Subset& core, size_t count, uint64_t stream) {
  const size_t outside = core.elements() - core.count();
  if (count > outside) {
    throw std::invalid_argument("an explorer of " + std::to_string(count) + " elements; " +
                                std::to_string(outside) + " are outside the core");
  }
  if (count == 0) return core;
  if (core.elements() > UINT32_MAX) {
    throw std::invalid_argument("a slice of " + std::to_string(core.elements()) +
                                " elements; explorers are drawn from slices below 2**32");
  }
  Below below(stream, static_cast<uint32_t>(core.elements()));
  if (count <= outside / 2) {
    Subset drawn = core;
    while (drawn.count() < core.count() + count) drawn.Insert(below.Next());
    return drawn;
  }
  // Those that are not drawn are fewer.
  Subset drawn(core.elements(), true);
  while (drawn.count() > core.count() + count) {
    const size_t element = below.Next();
    if (!core.Has(element)) drawn.Remove(element);
  }
  return drawn;
}

// From the likeliest share outwards, so that few are looked at.
size_t DrawShare(size_t all, size_t part, size_t drawn, uint64_t stream, uint64_t position) {
  const size_t least = part + drawn > all ? part + drawn - all : 0;
  const size_t most = std::min(part, drawn);
  const double share = (drawn + 1.0) * (part + 1.0) / (all + 2.0);
  const size_t mode = std::min(most, std::max(least, static_cast<size_t>(share)));
  const double at_mode =
      std::exp(LogChoose(part, mode) + LogChoose(all - part, drawn - mode) - LogChoose(all, drawn));
  const auto ratio = [&](size_t to) {  // of the likelihood of `to` to that of to - 1
    return static_cast<double>(part - to + 1) * static_cast<double>(drawn - to + 1) /
           (static_cast<double>(to) * static_cast<double>(all - part - drawn + to));
  };
  double left = static_cast<double>(Mix(stream + position) >> 11) * 0x1p-53 - at_mode;
  size_t low = mode, high = mode;
  double at_low = at_mode, at_high = at_mode;
  size_t found = mode;
  while (left >= 0 && (low > least || high < most)) {
    if (high < most) {
      at_high *= ratio(++high);
      left -= at_high;
      found = high;
    }
    if (left >= 0 && low > least) {
      at_low /= ratio(low--);
      left -= at_low;
      found = low;
    }
  }
  return found;
}

}  // namespace kvstore_ext
