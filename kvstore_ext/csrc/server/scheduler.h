// The scheduler's part of the lane. ps-lite tells a scheduler nothing of how a job goes; here it
// hears of failures and of the end, and notices when nobody is left.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "support/clock.h"
#include "support/failure.h"
#include "support/limits.h"
#include "transport/gate.h"
#include "transport/transport.h"

namespace kvstore_ext {

// Thread-safe.
class Scheduler {
 public:
  // `silence`: seconds without a sign of life from anybody after which the job counts as dead.
  // `job`: the number that a launcher has given it; 0 without one, when all are heard.
  Scheduler(std::shared_ptr<Transport> transport, int servers, double silence, uint32_t job)
      : servers_(servers),
        silence_(silence),
        job_(job),
        transport_(std::move(transport)),
        gate_(Side::kScheduler,
              [this](const Message& message) { Expect(IsOfOurJob(message), kOfAnotherJob); }),
        awake_(silence / 2) {
    transport_->Start([this](const Message& message) { OnArrival(message); });
  }
  ~Scheduler() { Stop(); }

  // The reason of a failure, waiting for one up to a time; an empty string if there is none. Signs
  // of life are awaited from the first one on: processes of MXNet's own give none. To be called
  // again and again, by one thread.
  std::string AwaitFailure(double seconds) {
    const double awake = awake_.Since();
    if (heard_ > 0 && Now() - std::max<double>(heard_, awake) > silence_ && !Over()) {
      failure_.Set("the scheduler has not heard of any worker or server for " + Seconds(silence_) +
                   ": all of them are gone, or its host is cut off");
    }
    if (heard_ == 0 && Now() - strangers_since_ > silence_ && Now() - stranger_at_ < silence_) {
      failure_.Set("the scheduler has heard of no process of its own job for " + Seconds(silence_) +
                   ", but of another one's: is KVSTORE_EXT_JOB the same everywhere?");
    }
    return failure_.Wait(seconds);
  }

  // Whether the servers have said that all workers have left: all servers, or one that has said so
  // kLastWords ago.
  bool Over() const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.empty()) return false;
    return static_cast<int>(ended_.size()) == servers_ || Now() - ended_since_ > kLastWords;
  }

  // Has AwaitFailure return at once, now and later.
  void EndWaits() { failure_.EndWaits(); }

  void Stop() { transport_->Stop(); }

 private:
  void OnArrival(const Message& message) {
    if (!gate_.Admits(message)) {
      if (!IsOfOurJob(message)) NoteStranger();
      return;
    }
    heard_ = Now();
    switch (message.header.type) {
      case MessageType::kAbort: failure_.Set(message.text); return;
      case MessageType::kFarewell: {
        std::lock_guard<std::mutex> lock(mutex_);
        if (ended_.empty()) ended_since_ = Now();
        ended_.insert(message.peer);
        return;
      }
      default: {
        Message answer = SignOfLife(gate_.refused());
        answer.peer = message.peer;
        try {
          transport_->Send(answer);
        } catch (const std::exception&) {  // ps-lite knows no way to one that has not come yet
        }
      }
    }
  }

  bool IsOfOurJob(const Message& message) const { return job_ == 0 || message.job == job_; }

  // One message may be left over from an earlier job; who goes on takes this for its own.
  void NoteStranger() {
    const double now = Now();
    if (now - stranger_at_ > silence_ / 2) strangers_since_ = now;
    stranger_at_ = now;
  }

  const int servers_;
  const double silence_;
  const uint32_t job_;
  const std::shared_ptr<Transport> transport_;
  Gate gate_;
  Failure failure_;
  Awake awake_;                             // of who calls AwaitFailure
  std::atomic<double> heard_{0};            // of anybody, by Now(); 0 before the first
  std::atomic<double> strangers_since_{0};  // without a pause, likewise
  std::atomic<double> stranger_at_{0};      // the last one

  mutable std::mutex mutex_;  // of all below
  std::set<int> ended_;       // servers that have said farewell
  double ended_since_ = 0;
};

}  // namespace kvstore_ext
