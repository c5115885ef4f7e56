// The connection of a worker to one server, or of a server to one worker.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/send_queue.h"
#include "support/task_threads.h"
#include "trace/recorder.h"
#include "transport/assembly.h"
#include "transport/batch.h"
#include "transport/gate.h"
#include "transport/lost_messages.h"
#include "transport/outlet.h"
#include "transport/signs_of_life.h"
#include "transport/transport.h"
#include "transport/window.h"

namespace kvstore_ext {

// By type of message.
struct Traffic {
  // Bytes: payload, text and header; what ps-lite and TCP add is not in it.
  std::array<uint64_t, kMessageTypes> sent{};
  std::array<uint64_t, kMessageTypes> received{};
  // Messages of ps-lite's, of which a batch is one.
  std::array<uint64_t, kMessageTypes> messages_sent{};
  std::array<uint64_t, kMessageTypes> messages_received{};
};

// Sends data by priority within a window of bytes in flight, and acknowledges what it receives.
// Every peer has a link of its own: one that is slow holds nobody else up. On a slow one a slice
// travels in parts, between which something more urgent may go, and is put together again here.
//
// Small messages that are queued together leave as one, as far as nothing larger comes between
// them. To a peer of this host whole slices are small, too, as far as memory that it has can take
// their payloads, and without checksums. Where others are under way already, one more is left to
// the sender, a thread: what comes until that has its turn leaves with it. So there are fewer
// messages where processors are behind, and one that is alone leaves at once.
//
// To a peer of which nothing has been heard since so many messages have left no data leaves any
// more, and control messages are few: ZeroMQ keeps 1000 for who is cut off, and has whoever sends
// one more wait for ever. So who is sent half as many in a row says something.
//
// Acknowledgements tell of receipt, not of results. A window that only an aggregated answer could
// open would deadlock: worker A's full of slices that wait for worker B, B's for A. They say how
// much has come since the link began, so that a later one makes up for one that is lost.
//
// Thread-safe. Sends on the calling thread, on that which takes an acknowledgement, or on the
// sender: Transport::Send does not wait for what is within the window.
class Link {
 public:
  // The estimator, if any, is told what the link can do, and measures it with pings. on_send, if
  // any, is called with each queued message just before its first part leaves. The sender, if any,
  // must be stopped before the link goes. The gate, if any, is asked of the messages in batches.
  // The recorder, if any, is told what travels, and what pings tell of the peer's clock.
  Link(std::shared_ptr<Transport> transport, int peer,
       std::shared_ptr<WindowEstimator> estimator = nullptr,
       std::function<void(const Message&)> on_send = nullptr, TaskThreads* sender = nullptr,
       Gate* gate = nullptr, Recorder* recorder = nullptr);

  // Parts of what is queued already stay as they are.
  void SetWindow(const Window& window);

  // The peer is of this host, and payloads lie in memory that it has, too. Then a larger window
  // costs no priority: there is no wire on which what is urgent would wait, and the receiver's
  // inbox is ordered, but for what has come in one batch. From now on the window is larger, and
  // fewer acknowledgements are worth a message. To be called before data travels, and at both ends.
  void UseSharedWindow();
  bool shares_memory() const { return shares_; }

  // From now on credit waits for data that itself waits for the peer's credit, and travels with it.
  // The peer gives its own without waiting, so that credit comes later by what a part takes to
  // travel. Where a link has one part under way its two ways take turns, and others fill the wire.
  // To be called at one end of a link alone, before data travels: two that wait for each other
  // would wait for a sign of life.
  void LetDataCarryCredit() { data_carries_credit_ = true; }

  // Queues a message with data, or one that asks for a slice, of which there may be thousands. It
  // leaves when its turn has come and the window has room. Throws std::length_error for one of
  // 4 GiB or more.
  void Send(Message message);

  // Sends any other message at once. Scalers, and news of rounds of sparse keys, of which there may
  // be thousands too, need no room in the window, but wait like data for a peer of which nothing is
  // heard.
  void SendControl(Message message);

  // Sends a sign of life, or what else is of use to a peer that is there alone: fewer and fewer,
  // and then none, while nothing is heard of it.
  void SendSign(const Message& message);

  // To be called with everything that the peer sent and the gate admits, by one thread. Answers
  // what concerns the link alone, and calls `act` with every message that is now whole. Then sends
  // the credit that no answer has carried, once it is enough to be worth a message and unless data
  // that waits may carry it. Throws Unfit for parts that do not fit each other and, after all else,
  // for a batch that cannot be read to its end; and what `act` throws.
  void Receive(Message received, const std::function<void(const Message&)>& act);

  // To be called, by the same thread, with what the gate has refused. Where a process of the job
  // has sent it after all, it has taken of the peer's window, and may bring credit: neither is
  // lost.
  void TakeRefused(const Message& refused);

  // The number of the job, which what is sent from now on carries; 0 before the two have agreed on
  // one, and in a job within one process. Whoever takes part in another job does not know it.
  void SetJob(uint32_t job) {
    job_ = job;
    knows_job_ = true;
  }
  uint32_t job() const { return job_; }
  bool knows_job() const { return knows_job_; }

  // From now on all that leaves has a checksum; so it has, too, once the peer's has one.
  void UseChecksums() { checks_ = true; }

  // Whether the peer gives all that it sends a checksum, and a message is of the job on which the
  // two have agreed.
  bool HasChecksum(const Message& message) const {
    return checks_ && knows_job_ && message.job == job_;
  }

  // Of the peer.
  SignsOfLife& signs() { return signs_; }

  // So many more bytes are about to go to the peer through MXNet's own store, or, negative, have
  // arrived: it is told with every sign of life, the first of which goes ahead of them.
  void StockLeaves(int64_t bytes);

  // How many messages that the peer has sent, and that somebody waits for, were lost so many
  // seconds ago or before. To be asked by a watchdog, again and again.
  int Lost(double now, double seconds) { return lost_.Lost(now, seconds); }

  // When, by Now(), anything of a round has come last; 0 before.
  double moved() const { return moved_; }

  // Measures the round trip, unless the link is busy, that was done just now, or neither estimator
  // nor recorder wants to know. Of a worker's link, and only after the server has been heard of.
  void Measure();

  // Whether this answers the ping that is under way.
  bool Awaits(const Message& pong) const { return ping_ != 0 && TimeOfPing(pong) == ping_; }

  // Adds what has travelled here.
  void AddTo(Traffic* traffic) const;

  // Drops all data, and control messages that wait, now and later; others still leave.
  void Close() { queue_.Close(); }

  // From now on nothing leaves at all, but for what other threads have in hand.
  void Hush() { outlet_.Close(); }
  bool has_in_hand() const { return outlet_.in_use(); }

 private:
  using Counts = std::array<std::atomic<uint64_t>, kMessageTypes>;  // by type of message

  void TakeForLink(const Message& message);
  bool BecomesWhole(Message* message);
  void NoteArrival(const Message& message);
  uint32_t owed() const { return taken_ - told_; }
  void Acknowledge();
  void Dispatch(Message* message);
  void CountSent(const Message& message);
  static void Count(Counts* counts, MessageType type, size_t more);
  void DispatchAll(Batch* batch);
  void SendSoon();
  void TakeCredit(uint32_t total);
  bool PutsPayloads() const { return shares_ && !checks_; }
  bool Put(Message* message);
  void Fetch(Message* message);
  void SendWhatFits();
  void Allow(const Window& window, size_t withheld);
  void Ping();
  void OnPong(const Message& pong);
  bool Records() const { return recorder_ != nullptr && recorder_->on(); }

  const std::shared_ptr<Transport> transport_;
  const int peer_;
  const std::function<void(const Message&)> on_send_;
  TaskThreads* const sender_;
  Gate* const gate_;
  Recorder* const recorder_;
  std::atomic<uint32_t> job_{0};
  std::atomic<bool> knows_job_{false};
  std::atomic<bool> checks_{false};
  std::atomic<bool> sends_soon_{false};
  SendQueue<Message> queue_;
  Outlet outlet_;
  SignsOfLife signs_;
  std::atomic<int64_t> stock_leaving_{0};   // bytes
  std::atomic<uint32_t> announcements_{0};  // of that
  Counts sent_{}, received_{};              // bytes
  Counts messages_sent_{}, messages_received_{};
  // Bytes of the window, by numbers that begin again at 0: of the peer's what has come has taken so
  // many, which it has been told of so far; of this end's the peer has told of so many.
  std::atomic<uint32_t> taken_{0}, told_{0};
  uint32_t credited_ = 0;             // the receiving thread's
  std::atomic<uint32_t> counted_{0};  // messages that have left, of those for which somebody waits
  LostMessages lost_;                 // of the peer's
  std::atomic<double> moved_{0};      // see moved()
  // Messages that have left since the peer was heard of, and that have come since one has left.
  std::atomic<int> unheard_{0}, unanswered_{0};
  std::atomic<unsigned> signs_ready_{0};  // while many have left unheard
  Assemblies assemblies_;                 // the receiving thread's
  const std::shared_ptr<WindowEstimator> estimator_;
  std::atomic<bool> shares_{false};
  std::atomic<size_t> part_bytes_{0};
  bool data_carries_credit_ = false;
  // Most bytes of credit that wait, here and at the peer; but for what waits for data to carry it.
  std::atomic<size_t> withheld_{0};
  std::atomic<double> pinged_{0};    // when
  std::atomic<int64_t> ping_{0};     // the time that the one under way carries; 0: there is none
  std::atomic<int> first_pings_{0};  // made, of those that follow each other
};

// Takes the window that rank 0 announces for all links, unless a later one is known: `latest` is
// the number of the last. Returns whether it did.
bool FollowWindow(const Message& announcement, uint64_t* latest,
                  const std::vector<std::unique_ptr<Link>>& links);

// Says of which of these peers, by rank with their hosts, messages were lost on their way, once
// nothing of a round has come on any link for so many seconds; empty if there are none. While
// anything comes a job is not stuck, and what is late may only be less urgent. None is lost where
// ps-lite sends it again. To be asked by a watchdog, again and again.
std::string LostMessagesOf(const std::string& role, const std::map<int, std::string>& hosts,
                           const std::vector<std::unique_ptr<Link>>& links, double seconds);

}  // namespace kvstore_ext
