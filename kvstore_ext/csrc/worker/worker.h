// A worker's half of the lane: slices go out by priority, results come back into place.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "keys/idle.h"
#include "keys/key_codec.h"
#include "support/failure.h"
#include "support/limits.h"
#include "support/statistics.h"
#include "support/task_threads.h"
#include "support/watchdog.h"
#include "trace/recorder.h"
#include "transport/checksum.h"
#include "transport/gate.h"
#include "transport/link.h"
#include "transport/memory_door.h"
#include "transport/scheduler_link.h"
#include "transport/transport.h"
#include "transport/unreadable.h"
#include "worker/operation.h"
#include "worker/order.h"
#include "worker/slack.h"
#include "worker/stock_operations.h"

namespace kvstore_ext {

struct WorkerOptions {
  int rank = 0;
  int workers = 1;
  int servers = 1;
  size_t slice_bytes = 200000;
  size_t window_bytes = 0;  // a peer; 0: measured and adapted. Rank 0's holds for the job
  Limits limits;
  bool deterministic = false;
  bool priorities = true;     // without: all slices are equals, and no order is learned
  bool checksum = false;      // of all that is sent, servers' answers too
  bool shared_memory = true;  // with a server of this host, for payloads
  int encode_threads = 2;     // that encode, and write results that are not written at once
  uint32_t job = 0;           // the number that a launcher has given the job, or 0
  std::string configuration;  // what must be equal on all workers, as text that an error can show
};

struct Answer {
  int server = 0;
  std::string text;
  Buffer payload;
};

// Thread-safe. A key's operations must come one after the other: the next after the last's `done`.
class Worker {
 public:
  Worker(const WorkerOptions& options, std::shared_ptr<Transport> transport);
  ~Worker();

  // Waits until all servers have said hello, or the job has failed; returns the ranks of those that
  // have not in time.
  std::vector<int> AwaitServers(double seconds);

  // Compares configurations with the other workers; throws std::runtime_error where they differ or
  // somebody does not come.
  void Join();

  // Makes a key known: its slices' declaration, but for the elements, which are the key's, and the
  // method, which is the codec's. A key is declared once, with the same arguments on all workers,
  // and has a codec of its own. Throws std::invalid_argument where they do not fit.
  void Declare(uint64_t key, const SliceDeclaration& declaration, std::shared_ptr<KeyCodec> codec);

  // Where a declared key's slices are.
  std::vector<Slice> Slices(uint64_t key) const;

  // How many rounds a key has begun.
  uint64_t RoundsOf(uint64_t key) const;

  // Whether the last of them that has ended did not count, since a gradient was not finite.
  bool WasSkipped(uint64_t key) const;

  // All that are declared: their slices' declaration, of the whole key.
  std::vector<std::pair<uint64_t, SliceDeclaration>> Declared() const;

  Totals totals() const { return statistics_.totals(); }

  // The script has come to where it reads parameters.
  void ScriptReads() { statistics_.ScriptReads(); }

  // Bytes of payload, text and header by type of message: sent to all servers, and received.
  Traffic traffic() const;

  // Bytes of payload, sent and received, that lay in memory which a server of this host has, too.
  std::pair<uint64_t, uint64_t> SharedBytes() const;

  // Asks a server's Python something; returns the question's number.
  uint64_t Ask(int server, const std::string& text, const Buffer& payload);

  // Waits so long for the answer to a question, which is given once; nothing if it is not there
  // then. Throws std::runtime_error, which names the server, where none comes in time.
  std::optional<Answer> AwaitAnswer(uint64_t question, double seconds = Limits::kForEver);

  // Whether AwaitAnswer would return at once.
  bool IsAnswered(uint64_t question) const;

  // Nobody will wait for the answer to a question, whether or not it comes.
  void GiveUp(uint64_t question);

  // Tells the servers that this worker has done what all workers do, in words that go behind "has":
  // those who do not follow are named. With `waits` AwaitMeeting follows.
  void Meet(const std::string& what, bool waits);

  // Waits until all workers have met for that; returns whether they have, once, within so many
  // seconds. Throws std::runtime_error after a failure.
  bool AwaitMeeting(const std::string& what, double seconds);

  // Those of MXNet's own store. After a failure no more of them end.
  StockOperations& stock() { return stock_; }

  SchedulerLink& scheduler() { return scheduler_; }

  // So many more bytes are about to go to each server through MXNet's own store, or, negative, have
  // arrived there.
  void StockLeaves(const std::vector<int64_t>& bytes);

  // A pull through MXNet's own store: what is awaited, for messages, and at most so many bytes from
  // each server. Returns its number, and later it has ended.
  int BeginPull(const std::string& what, const std::vector<int64_t>& bytes);
  void EndPull(int number, const std::vector<int64_t>& bytes);

  // Begins an operation on a declared key. Throws std::out_of_range for any other, whose `done` is
  // then not called. Whatever else goes wrong ends the operation, and the job.
  void Start(Operation operation);

  // An operation that would have opened a round will not come, for its array could not be computed.
  // That ends a script, as a rule, and its own error says more than the core could. One that goes
  // on ends the job with the key's next round, which would be one behind the other workers', or
  // would take the place of the key's first value.
  void Miss(uint64_t key);

  // As Meet, of the next round of the sparse key with this number in MXNet's own store; `what` the
  // worker does in it. The words get the round's number here, since the engine starts what a script
  // has pushed at once in any order.
  void MeetSparse(uint64_t number, const std::string& what);

  // Waits for all operations, then has rounds of all keys go without this worker: store.join. With
  // `mean` their sums count as those of all workers. Throws std::runtime_error after a failure.
  void BeginIdle(bool mean);

  // Of an idle worker: waits so many seconds, or until it has to do something: the number of a
  // sparse key for which it is to push nothing. Throws as BeginIdle.
  std::optional<uint64_t> AwaitDemand(double seconds);

  // Nothing before all workers are idle. Then, once: they take part again, and these of them have
  // missed rounds.
  std::optional<std::set<int>> EndIdle();

  // Waits for all operations, tells the servers, and waits until the other workers have left too,
  // for so many seconds at most. Returns whether they have; otherwise it is to be called again.
  // Throws std::runtime_error where that fails.
  bool Leave(double seconds = Limits::kForEver);

  // Ends all operations with an error, here and on every other process.
  void Abort(const std::string& reason);

  // Sends nothing any more, and ends open operations with an error. What other threads are sending
  // has left once this returns, unless that takes them longer than kLastWords. What still arrives
  // is taken, as ps-lite demands while it runs.
  void Hush();

  // Hushes and stops all threads.
  void Stop();

  // What a caller's priority counts here.
  int Priority(int callers) const { return options_.priorities ? callers : 0; }

  // How many messages the gates have refused, here and, as far as these have told, at the servers
  // and the scheduler.
  uint64_t refused() const;

  std::string failure() const { return failure_.reason(); }
  Recorder& recorder() { return recorder_; }

  // Keys in the order in which they are needed; empty until it is known.
  std::vector<uint64_t> order() const;

 private:
  class Key;

  // What a key sends in a round, or asks for with a kPull.
  struct Round {
    Key* key = nullptr;
    Operation::Kind kind = Operation::Kind::kPull;
    uint64_t number = 0;
    const char* input = nullptr;
    int root = 0;
    uint32_t step = 0;
    std::string settings;
    Encoding encoding = Encoding::kPlain;  // set before any slice is encoded
    int64_t prepared_since = 0;            // for the recorder

    bool is_gradient() const { return kind == Operation::Kind::kPush && number > 0; }
  };

  // A sparse key, by its number, for which an idle worker is to push nothing so many times.
  struct Demand {
    uint64_t number = 0;
    uint64_t times = 0;
  };

  // A question.
  struct Asked {
    int server = 0;
    double since = 0;
    double awaited = 0;     // since when, by Now(); 0 where it is not
    bool given_up = false;  // its answer may still come, and is dropped
  };

  // worker_rounds.cc: a round goes out, and its result comes back.
  std::shared_ptr<Round> Open(Key* key, const std::unique_lock<std::mutex>& lock);
  void CountRound(Key* key);
  static std::shared_ptr<Round> RoundOf(Key* key);
  void NoteReady(uint64_t id, double ready);
  void Prepare(const std::shared_ptr<Round>& round, bool plain);
  void AdmitRound(Key* key, uint64_t number, Encoding encoding);
  void EncodeInTurn(const std::shared_ptr<const Round>& round, const Slice& slice);
  void TrySendSlice(const Round& round, const Slice& slice);
  void SendSlice(const Round& round, const Slice& slice);
  std::shared_ptr<void> NoteLeft(const Round& round, const Slice& slice);
  Buffer PayloadOf(const Round& round, const Slice& slice);
  void OnResult(const Message& message);
  static bool Awaits(const Key& key, const Header& header);
  bool Take(Key* key, const Slice& slice, const Result& result);
  bool Receive(Key* key, const Slice& slice, const Result& result);
  void Arrived(Key* key, Encoding encoding, std::unique_lock<std::mutex>* lock);
  void TakeKept(Key* key, std::unique_lock<std::mutex>* lock);
  void Finish(Key* key, std::unique_lock<std::mutex>* lock, const std::string& error);
  void AbortKey(const Key& key, const char* what, const std::exception& error);

  void NotifyWhenDone(MessageType type, IdleNotice notice);  // worker_idle.cc
  void SkipTo(Key* key, uint64_t round);

  // worker_trace.cc: what is recorded while it is traced.
  static Event EventOfKey(EventKind kind, const Key& key);
  void RecordReady(const Key& key);
  void RecordWritten(const Key& key, const Slice& slice, int64_t begun, size_t bytes);
  void MeasureClocks();

  // worker_limits.cc: nothing waits for ever.
  void CheckDeadlines();
  void GiveSigns();
  bool LosesServers(std::string* which);
  std::string WhatOf(const std::set<int>& lost);
  std::string UnreadBatch();
  std::string LostOnTheWay() const;
  std::string Overdue(Key* key);
  std::string Unanswered(double seconds);
  std::string Unanswered(Key* key, double seconds, std::set<int>* servers);
  void OnNotice(const Message& message);
  void Say(const std::string& notice);

  // worker_gate.cc: what messages must fit.
  void CheckFits(const Message& message);
  void CheckResult(const Message& message);
  void CheckOfKey(const Message& message);
  static const Slice& SliceAt(const Key& key, const Message& message);
  std::string Unread();

  uint64_t HandInMemory(int server);  // worker_joins.cc: how it comes to its servers

  // worker.cc: what messages do, and how a job fails and ends.
  void OnArrival(Message message);
  void OnDamage(const Damaged& damage);
  void ActUpon(const Message& message);
  void OnSignOfLife(const Message& message);
  void OnNews(const Message& message);
  void OnWelcome(const Message& message);
  void OnAnswer(const Message& message);
  bool Waits(uint64_t question, const Asked& asked) const;
  void SetOrder(const std::vector<uint64_t>& order, uint64_t number);
  void AnnounceOrder(const std::vector<uint64_t>& order, uint64_t number);
  void AnnounceWindow(const Window& window);
  std::set<int> Greeted() const;  // servers that have
  void EndOperations(const std::string& reason);
  bool HasInHand() const;
  void Await(const std::set<int>& servers, size_t least, const char* what, double limit);
  void RequireAnswers(const std::set<int>& servers, size_t least, const char* what, double limit);
  Key* Find(uint64_t id) const;
  std::vector<Key*> Keys();
  std::string Named(const std::string& what) const;

  const WorkerOptions options_;
  const std::shared_ptr<Transport> transport_;
  Gate gate_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Link>> links_;  // by server; none comes or goes
  SchedulerLink scheduler_;
  // Windows announced by rank 0: the first by the thread that joins, others under the estimator's
  // lock. Or windows followed, by the receiving thread.
  uint64_t windows_ = 0;
  std::atomic<bool> idle_{false};  // until EndIdle
  std::atomic<bool> leaving_{false};
  double left_since_ = 0;           // of the thread that leaves
  std::atomic<int> telling_{0};     // threads that tell the job of a failure
  std::atomic<double> noticed_{0};  // when this worker was last told for whom it waits
  // Thread-safe, as links are.
  Failure failure_;
  Unreadable unreadable_{&gate_};
  OrderLearner learner_;
  Slack slack_;
  std::shared_ptr<WindowEstimator> estimator_;  // rank 0's, unless its window is fixed
  Statistics statistics_;
  StockOperations stock_;

  // Of all below, but for the keys themselves. Taken after a key's.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<uint64_t, std::unique_ptr<Key>> keys_;
  std::vector<uint64_t> order_;
  uint64_t order_number_ = 0;         // as rank 0 has announced it; 0: there is none
  std::map<int, std::string> hosts_;  // of servers that have greeted
  std::map<int, uint64_t> doors_;     // of these servers
  std::map<int, std::shared_ptr<SharedMemory>> memories_;  // handed in, by server
  std::set<int> welcomed_, parted_;                        // servers that have said so
  std::map<int, uint64_t> refused_at_;                     // by server, as it has told
  std::set<std::string> met_;  // meetings to which all workers have come
  int open_operations_ = 0;
  uint64_t questions_ = 0;           // asked so far
  std::map<uint64_t, Asked> asked_;  // whose answers nobody has taken
  std::map<uint64_t, Answer> answers_;
  Rounds sparse_;                          // begun, by number
  std::deque<Demand> demands_;             // of an idle worker
  std::map<int, Resumption> resumptions_;  // by server, since the worker is idle

  Awake awake_;  // the watchdog's
  // The links'; these use all of the above.
  TaskThreads sender_{1, [this](const std::exception& error) { Abort(Named(error.what())); }};
  TaskThreads tasks_;  // encode slices and write results; these as well, and so does
  Watchdog watchdog_;
};

}  // namespace kvstore_ext
