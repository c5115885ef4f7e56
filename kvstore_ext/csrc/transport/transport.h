// How messages reach the other side: over ps-lite in a cluster, through memory in one process.
#pragma once

#include <functional>
#include <memory>

#include "transport/message.h"
#include "transport/shared_memory.h"

namespace kvstore_ext {

// Called on one thread of the transport, one message at a time, higher priorities first.
using MessageHandler = std::function<void(Message)>;

class Transport {
 public:
  virtual ~Transport() = default;

  // Begins delivery. Called once; the handler must outlive the transport or the call to Stop.
  virtual void Start(MessageHandler handler) = 0;

  // Hands a message to the network and returns without waiting for it to leave, unless a thousand
  // are left for the same peer. Thread-safe.
  // Bytes of the payload must stay as they are until the peer has acknowledged them.
  virtual void Send(const Message& message) = 0;

  // Puts a payload where the peer finds it, if both have such memory and that has room. Then the
  // message says where, and the bytes of the payload need not stay. Send does so by itself; this is
  // for what shall travel within another message.
  virtual bool Put(Message*) { return false; }

  // Takes the payload of a message that has come within another one and says where it lies. It gets
  // none where nothing is there.
  virtual void Fetch(Message*) const {}

  // From now on payloads to and from a peer may lie in memory that both have. Called once a peer;
  // a transport within a process needs none.
  virtual void Share(int, std::shared_ptr<SharedMemory>) {}

  // After its return the handler runs no more. Must not be called from the handler.
  virtual void Stop() = 0;
};

}  // namespace kvstore_ext
