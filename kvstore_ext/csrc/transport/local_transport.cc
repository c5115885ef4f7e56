#include "transport/local_transport.h"

namespace kvstore_ext {

std::pair<std::shared_ptr<LocalTransport>, std::shared_ptr<LocalTransport>>
LocalTransport::MakePair() {
  auto first = std::make_shared<LocalTransport>();
  auto second = std::make_shared<LocalTransport>();
  first->other_ = second;
  second->other_ = first;
  return {first, second};
}

void LocalTransport::Start(MessageHandler handler) {
  handler_ = std::move(handler);
  thread_ = std::thread(&LocalTransport::Deliver, this);
}

void LocalTransport::Send(const Message& message) {
  if (message.peer == kScheduler) return;  // there is none
  if (auto other = other_.lock()) other->Accept(message);
}

void LocalTransport::Accept(Message message) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    inbox_.emplace(std::make_pair(-int64_t{message.priority}, arrivals_++), std::move(message));
  }
  arrived_.notify_one();
}

void LocalTransport::Deliver() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return stopping_ || !inbox_.empty(); });
    if (stopping_) return;
    Message message = std::move(inbox_.begin()->second);
    inbox_.erase(inbox_.begin());
    lock.unlock();
    handler_(std::move(message));
    message = Message();  // what it held is freed outside the lock
    lock.lock();
  }
}

void LocalTransport::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace kvstore_ext
