// What all workers come to, each in its own time: a barrier, a round of a sparse key. Server 0
// keeps count, so that it can name those who do not come.
#pragma once

#include <map>
#include <set>
#include <string>

namespace kvstore_ext {

// Not thread-safe.
class Meetings {
 public:
  struct Meeting {
    std::set<int> present;  // workers
    std::set<int> waiting;  // those of them who want to hear when all have come
    double since = 0;       // when the first one came
  };

  explicit Meetings(int workers) : workers_(workers) {}

  // Notes a worker that has done `what`, in words that go behind "has". Once all have, the meeting
  // is over: then returns those who wait for that, otherwise nobody.
  std::set<int> Come(const std::string& what, int worker, bool waits, double now) {
    Meeting& meeting = open_[what];
    if (meeting.present.empty()) meeting.since = now;
    meeting.present.insert(worker);
    if (waits) meeting.waiting.insert(worker);
    if (static_cast<int>(meeting.present.size()) < workers_) return {};
    const std::set<int> waiting = meeting.waiting;
    open_.erase(what);
    return waiting;
  }

  // Those to which not all have come yet, by what they are about.
  const std::map<std::string, Meeting>& open() const { return open_; }

 private:
  const int workers_;
  std::map<std::string, Meeting> open_;
};

}  // namespace kvstore_ext
