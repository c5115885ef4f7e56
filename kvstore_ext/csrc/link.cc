#include "link.h"

#include "failure.h"

namespace kvstore_ext {
namespace {

// Bytes that a message counts in the window: headers too, so that slices of a few bytes are
// bounded.
size_t Weight(const Message& message) { return message.payload.size + sizeof(Header); }

uint64_t NowInNanoseconds() { return static_cast<uint64_t>(Now() * 1e9); }

constexpr double kSecondsBetweenPings = 0.05;

bool IsData(const Message& message) {
  const MessageType type = message.header.type;
  return type == MessageType::kInit || type == MessageType::kPush || type == MessageType::kResult;
}

}  // namespace

Link::Link(std::shared_ptr<Transport> transport, int peer, size_t slice_bytes, size_t window_bytes,
           std::function<void(const Message&)> on_send)
    : transport_(std::move(transport)),
      peer_(peer),
      on_send_(std::move(on_send)),
      last_heard_(Now()),
      estimator_(slice_bytes + sizeof(Header), window_bytes) {
  queue_.SetWindow(estimator_.window_bytes());
}

void Link::Send(Message message) {
  message.peer = peer_;
  const int priority = message.priority;
  const size_t bytes = Weight(message);
  MeasureIfIdle();
  queue_.Push(priority, bytes, std::move(message));
  SendWhatFits();
}

void Link::SendControl(Message message) {
  if (hushed_) return;
  message.peer = peer_;
  message.header.credit = owed_.exchange(0);
  transport_->Send(message);
}

void Link::Received(const Message& message) {
  last_heard_ = Now();
  if (IsData(message)) owed_ += Weight(message);
  if (message.header.type == MessageType::kPing) {
    Message answer = ControlMessage(MessageType::kPong);
    answer.header.key = message.header.key;
    SendControl(std::move(answer));
  } else if (message.header.type == MessageType::kPong) {
    std::lock_guard<std::mutex> lock(estimator_mutex_);
    estimator_.RoundTrip((NowInNanoseconds() - message.header.key) * 1e-9);
  }
  if (message.header.credit == 0) return;
  {
    std::lock_guard<std::mutex> lock(estimator_mutex_);
    estimator_.Acknowledged(message.header.credit, Now());
    queue_.SetWindow(estimator_.window_bytes());
  }
  queue_.Release(message.header.credit);
  SendWhatFits();
}

void Link::Acknowledge() {
  if (owed_ > 0) SendControl(ControlMessage(MessageType::kCredit));
}

void Link::SendWhatFits() {
  Message message;
  while (queue_.TryPop(&message)) {
    {
      std::lock_guard<std::mutex> lock(estimator_mutex_);
      estimator_.Sent(Weight(message), Now());
    }
    message.header.credit = owed_.exchange(0);
    if (on_send_) on_send_(message);
    transport_->Send(message);
  }
}

// Only while nothing is under way does an answer's time tell the distance and not the queue's
// length.
void Link::MeasureIfIdle() {
  {
    std::lock_guard<std::mutex> lock(estimator_mutex_);
    if (Now() - pinged_ < kSecondsBetweenPings || !queue_.Idle()) return;
    pinged_ = Now();
  }
  Message ping = ControlMessage(MessageType::kPing);
  ping.header.key = NowInNanoseconds();
  SendControl(std::move(ping));
}

}  // namespace kvstore_ext
