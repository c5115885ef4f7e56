// The connection of a worker to one server, or of a server to one worker.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "send_queue.h"
#include "transport.h"
#include "window.h"

namespace kvstore_ext {

// Sends data by priority within a window of bytes in flight, and acknowledges what it receives.
// Every peer has a link of its own: one that is slow holds nobody else up.
//
// Acknowledgements tell of receipt, not of results. A window that only an aggregated answer could
// open would deadlock: worker A's full of slices that wait for worker B, B's for A.
//
// Thread-safe; sends on the calling thread, since Transport::Send does not wait.
class Link {
 public:
  // on_send, if any, is called with each message of data just before it leaves.
  Link(std::shared_ptr<Transport> transport, int peer, size_t slice_bytes, size_t window_bytes,
       std::function<void(const Message&)> on_send = nullptr);

  // Queues a message with data; it leaves when its turn has come and the window has room.
  void Send(Message message);

  // Sends a message without data at once.
  void SendControl(Message message);

  // To be called with everything that the peer sent, before it is acted upon. Answers what concerns
  // the link alone.
  void Received(const Message& message);

  // To be called after it was acted upon: sends the credit that no answer has carried.
  void Acknowledge();

  // When the peer was last heard of, by Now().
  double last_heard() const { return last_heard_; }

  // Whether all data has been sent and acknowledged.
  bool Idle() const { return queue_.Idle(); }

  // Drops all data, now and later; control messages still leave.
  void Close() { queue_.Close(); }

  // From now on nothing leaves at all.
  void Hush() { hushed_ = true; }

 private:
  void SendWhatFits();
  void MeasureIfIdle();

  const std::shared_ptr<Transport> transport_;
  const int peer_;
  const std::function<void(const Message&)> on_send_;
  SendQueue<Message> queue_;
  std::atomic<bool> hushed_{false};
  std::atomic<double> last_heard_;
  std::atomic<uint64_t> owed_{0};  // bytes received and not yet acknowledged
  std::mutex estimator_mutex_;
  WindowEstimator estimator_;
  double pinged_ = 0;  // when
};

}  // namespace kvstore_ext
