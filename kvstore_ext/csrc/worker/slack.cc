#include "worker/slack.h"

#include <algorithm>

namespace kvstore_ext {

std::optional<double> Slack::Ready(uint64_t key, double now) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool first_of_all = seen_.empty();
  // A key that comes again begins the next iteration; some keys may take part in a few only.
  if (seen_.insert(key).second && !first_of_all) {
    last_ = std::max(last_, now);  // two threads may come here in either order
    return {};
  }
  const double computed = (1 + kForward) * (last_ - first_), took = now - first_;
  seen_ = {key};
  first_ = last_ = now;
  if (first_of_all) return {};
  return took > computed ? 1 - computed / took : 0;
}

}  // namespace kvstore_ext
