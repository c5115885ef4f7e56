// Learns in which order the next forward pass needs the keys.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace kvstore_ext {

// A forward pass needs the parameters in the reverse of the order in which the backward pass before
// it computed their gradients (P3, section 3). So the order can be watched, instead of trusting the
// caller's numbers: gluon.Trainer numbers parameters alphabetically.
//
// Only gradients that were still being computed when they were pushed tell something. Those that
// were there already were computed earlier than the others, hence are needed later; among
// themselves the caller's priorities decide. An iteration whose gradients became ready in the order
// in which they were pushed teaches nothing, since then they waited for a thread, not for being
// computed; the caller's priorities stay. On a busy machine threads begin late and neighbours
// change places, so several iterations are averaged, and the first of them is used meanwhile. A key
// that first comes later, as where a script unfreezes layers, has all learned anew. Thread-safe.
class OrderLearner {
 public:
  // Called with keys in the order in which they are needed, and the number of the lesson that has
  // taught it: two threads may call at once, the later lesson's first.
  using Learned = std::function<void(const std::vector<uint64_t>& order, uint64_t lesson)>;

  // `learned` is called at the first iteration that teaches an order and whenever one of the next
  // kLessons - 1 has changed it; likewise once a key comes that was not there before.
  explicit OrderLearner(Learned learned) : learned_(std::move(learned)) {}

  // A key's gradient of a round is ready; it was pushed at an earlier time, both in seconds.
  void Ready(uint64_t key, uint64_t round, double pushed, double now, int callers_priority);

 private:
  struct Sighting {
    uint64_t key;
    double pushed;
    bool waited;
    int callers_priority;
  };

  // Where a key stood in the iterations that taught something: from 0, needed first, to 1.
  struct Places {
    double sum = 0;
    int iterations = 0;
    int callers_priority = 0;
  };

  // Whether iterations may still teach something.
  bool Watches() const { return lessons_left_ > 0 && iterations_left_ > 0; }
  // From the next iteration on.
  void BeginAnew();
  // Ends the iteration: the order known from now on if that is another one, otherwise nothing.
  std::vector<uint64_t> Conclude();
  // Adds the iteration to the places, unless it teaches nothing.
  bool Learn();
  std::vector<uint64_t> Order() const;

  static constexpr uint64_t kFirstRound = 1;  // round 0 has the initial values
  static constexpr int kLessons = 5;
  static constexpr int kIterations = 100;  // what has taught nothing in so many never will
  // Longer than the engine takes to begin an operation whose operands are ready.
  static constexpr double kWaited = 0.002;
  // The share of all pairs of keys that must have become ready in the other order than they were
  // pushed, for an iteration to teach something. A backward pass turns all pairs round if the keys
  // are pushed by layer, and half of them if by name.
  static constexpr double kLeastTurned = 0.1;

  const Learned learned_;  // called without the lock
  std::mutex mutex_;       // of all below
  uint64_t lessons_ = 0;   // so far
  int lessons_left_ = kLessons, iterations_left_ = kIterations;
  bool partial_ = false;      // the iteration had begun before it was watched
  std::set<uint64_t> known_;  // all keys so far
  std::map<uint64_t, Places> places_;
  std::vector<uint64_t> order_;
  std::vector<Sighting> iteration_;  // in the order in which they became ready
  std::set<uint64_t> seen_;          // in this iteration
};

}  // namespace kvstore_ext
