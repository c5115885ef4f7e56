// The way of a worker or a server to the job's scheduler, which may be gone without the job
// failing: once the cluster stands, nothing needs it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "support/clock.h"
#include "transport/outlet.h"
#include "transport/transport.h"

namespace kvstore_ext {

// Thread-safe.
class SchedulerLink {
 public:
  // `lapse`: seconds between two signs from which on the process was stopped itself. `job`: the
  // number that a launcher has given the job, or 0.
  SchedulerLink(std::shared_ptr<Transport> transport, double lapse, uint32_t job)
      : transport_(std::move(transport)), lapse_(lapse), job_(job) {}

  // Gives a sign of life, which the scheduler answers. Only once the cluster stands.
  void GiveSign() {
    if (IsLate()) heard_ = Now();  // from now on an answer is awaited
    signed_ = Now();
    if (++unanswered_ <= kMostUnanswered) Send(ControlMessage(MessageType::kCredit));
  }

  void Send(Message message) {
    const Outlet::Way way(&outlet_);
    if (!way.open()) return;
    message.peer = kScheduler;
    message.job = job_;
    transport_->Send(message);
  }

  // To be called with everything that it sent, by one thread.
  void Receive(const Message& sign_of_life) {
    heard_ = Now();
    unanswered_ = 0;
    refused_ = std::max<uint64_t>(refused_, RefusedAt(sign_of_life));
  }

  // How many messages its gate has refused, as it has told.
  uint64_t refused() const { return refused_; }

  // For how many seconds it has not been heard of; 0 before the first sign to it, and before the
  // first one after the process was stopped.
  double silence() const { return IsLate() ? 0 : Now() - heard_; }

  // Sends nothing any more, but for what other threads have in hand. ZeroMQ keeps 1000 messages for
  // a peer that is gone; then whoever sends one more would wait for ever.
  void Close() { outlet_.Close(); }
  bool has_in_hand() const { return outlet_.in_use(); }

 private:
  // Signs that may be on their way to a scheduler that is gone: see Close.
  static constexpr int kMostUnanswered = 300;

  bool IsLate() const { return Now() - signed_ > lapse_; }

  const std::shared_ptr<Transport> transport_;
  const double lapse_;
  const uint32_t job_;
  std::atomic<double> heard_{0};    // when, by Now()
  std::atomic<double> signed_{0};   // when the last sign was given
  std::atomic<int> unanswered_{0};  // signs
  std::atomic<uint64_t> refused_{0};
  Outlet outlet_;
};

}  // namespace kvstore_ext
