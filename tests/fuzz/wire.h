// A transport between a process of the lane and its fuzz target.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "one_by_one.h"
#include "transport/transport.h"

namespace kvstore_ext {

// The target delivers on its own thread; threads of the process may send meanwhile.
class Wire : public Transport {
 public:
  void Start(MessageHandler handler) override { handler_ = std::move(handler); }
  void Send(const Message& message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    sent_.push_back(message);
  }
  void Stop() override {}

  void Deliver(Message message) { handler_(std::move(message)); }

  // What was sent since the last call, those of batches one by one.
  std::vector<Message> TakeSent() {
    std::vector<Message> sent;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      sent.swap(sent_);
    }
    return OneByOne(std::move(sent));
  }

 private:
  MessageHandler handler_;
  std::mutex mutex_;  // of all below
  std::vector<Message> sent_;
};

}  // namespace kvstore_ext
