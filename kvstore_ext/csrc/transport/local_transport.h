// Joins a worker and a server in one process, so that a store without a cluster runs the same code.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "transport/transport.h"

namespace kvstore_ext {

// One end of a pair; what one end sends, the other's handler receives, ordered as in a cluster:
// by priority, then by arrival. Thread-safe.
class LocalTransport : public Transport {
 public:
  static std::pair<std::shared_ptr<LocalTransport>, std::shared_ptr<LocalTransport>> MakePair();

  ~LocalTransport() override { Stop(); }

  void Start(MessageHandler handler) override;
  void Send(const Message& message) override;
  void Stop() override;

 private:
  void Accept(Message message);
  void Deliver();

  std::weak_ptr<LocalTransport> other_;  // set by MakePair
  MessageHandler handler_;               // set by Start, then the thread's
  std::mutex mutex_;                     // of all below, but for the thread
  std::condition_variable arrived_;
  std::map<std::pair<int64_t, uint64_t>, Message> inbox_;  // (-priority, arrival)
  uint64_t arrivals_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // of who starts and stops it
};

}  // namespace kvstore_ext
