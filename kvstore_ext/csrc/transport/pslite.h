// A transport over ps-lite, beside MXNet's own store.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transport/process_ids.h"
#include "transport/pslite_layout.h"
#include "transport/transport.h"

namespace kvstore_ext {

// Sends and receives as a second ps-lite customer beside MXNet's own store in the same process.
//
// Peers are as Message says. The Postoffice must outlive Stop, and
// everybody's customer must exist before anybody sends to it: ps-lite aborts a process that gets a
// message for a customer it does not have.
class PsLiteTransport : public Transport {
 public:
  // `role` is this process's; `peers`, how many ranks of the other role there are: at the
  // scheduler, twice as many as of the role that has more. `copies` sends copies of borrowed bytes,
  // which is needed where ps-lite may send them again later (PS_RESEND).
  PsLiteTransport(Role role, int peers, bool copies);
  ~PsLiteTransport() override { Stop(); }

  void Start(MessageHandler handler) override;
  void Send(const Message& message) override;
  bool Put(Message* message) override;
  void Fetch(Message* message) const override;
  void Share(int peer, std::shared_ptr<SharedMemory> memory) override;
  void Stop() override;

 private:
  struct Peer {
    std::atomic<int> timestamp{0};
    std::shared_ptr<SharedMemory> shared;        // set by Share, before it is seen in the next
    std::atomic<SharedMemory*> memory{nullptr};  // null: of another host
  };

  void Receive(const ps::Message& received) const;
  void Handle(Message message, const ps::Meta& meta) const;
  int Timestamp(int peer);
  SharedMemory* MemoryOf(int peer) const;

  static constexpr int kAppId = 1;                // 0 is MXNet's own
  static constexpr size_t kCustomerBytes = 4096;  // more than sizeof(ps::Customer)

  const Role role_;
  const bool copies_;
  MessageHandler handler_;   // set by Start, then of the customer's thread
  std::vector<Peer> peers_;  // the scheduler's first
  // Of who starts and stops it.
  std::unique_ptr<char[]> customer_;
  bool running_ = false;
};

// Has all threads that start from now on allocate from one heap. A server's slices are allocated by
// one thread and freed by another; with a heap for each, as by default, a server's process was
// measured to hold 3.5 times its share of the parameters instead of 2.5.
void UseOneHeap();

}  // namespace kvstore_ext
