// What all workers come to, each in its own time: a barrier, a round of a sparse key. Server 0
// keeps count, so that it can name those who do not come.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace kvstore_ext {

// Not thread-safe.
class Meetings {
 public:
  // The number of a sparse key, or 0, and what a worker has done, in words that go behind "has".
  // Two stores may have keys of one name.
  using About = std::pair<uint64_t, std::string>;

  struct Meeting {
    std::set<int> present;  // workers
    std::set<int> waiting;  // those of them who want to hear when all have come
    double since = 0;       // when the first one came
  };

  explicit Meetings(int workers) : workers_(workers) {}

  // Notes a worker. Once all have come, the meeting is over: then returns those who wait for that,
  // otherwise nobody.
  std::set<int> Come(const About& about, int worker, bool waits, double now) {
    Meeting& meeting = open_[about];
    if (meeting.present.empty()) meeting.since = now;
    meeting.present.insert(worker);
    if (waits) meeting.waiting.insert(worker);
    if (static_cast<int>(meeting.present.size()) < workers_) return {};
    const std::set<int> waiting = meeting.waiting;
    open_.erase(about);
    return waiting;
  }

  // Those to which not all have come yet.
  const std::map<About, Meeting>& open() const { return open_; }

 private:
  const int workers_;
  std::map<About, Meeting> open_;
};

}  // namespace kvstore_ext
