// A server's half of the lane: slices of all workers come in, one result goes out to each.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/idle_workers.h"
#include "server/meetings.h"
#include "server/reduction.h"
#include "server/scaler_sharing.h"
#include "server/sparse_rounds.h"
#include "support/dtype.h"
#include "support/failure.h"
#include "support/limits.h"
#include "support/send_queue.h"
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

namespace kvstore_ext {

struct ServerOptions {
  int workers = 1;
  Limits limits;
  uint32_t job = 0;      // the job's number; workers' messages that have another one are refused
  std::string job_name;  // the launcher's; without one the scheduler does not know the number
  bool shared_memory = false;  // takes memory from workers of this host for payloads
  // Methods that are more than a codec, by the first word of a declaration's method.
  std::map<std::string, std::shared_ptr<ServerMethod>> methods;
};

// A completed sum that waits for the optimizer, which overwrites `value`.
struct Update {
  uint64_t key = 0;
  uint32_t slice = 0;
  int32_t store = 0;
  std::string literal, name;  // the key's, as in its declaration
  DType dtype = DType::kFloat32;
  size_t elements = 0;
  uint64_t round = 0;    // whose sum this is
  uint32_t step = 0;     // Operation::step of the lowest rank that takes part
  std::string settings;  // the last that rank 0 has sent with this slice; see worker/operation.h
  bool failed = false;   // computing the value failed; MXNet raises the reason for who reads it
  int64_t taken = 0;     // by the optimizer, for the recorder
  Buffer gradient;       // not rounded: of SumTypeOf(dtype)
  Buffer value;
};

// Something that a worker asks of the server's Python.
struct Question {
  int worker = 0;
  uint64_t number = 0;
  std::string text;
  Buffer payload;
};

// How a worker keeps up, in the slices of one server.
struct WorkerProgress {
  uint64_t pushes = 0;  // slices
  double late = 0;      // seconds, summed over them, by which it came after the first worker
  double missing = 0;   // seconds that the longest of the open rounds has waited for it by now
};

// Holds its slices of the parameters. Without an optimizer a slice's value is its last sum.
// Thread-safe.
class Server {
 public:
  Server(const ServerOptions& options, std::shared_ptr<Transport> transport);
  ~Server();

  // ps-lite gives ranks only once the cluster stands, but messages may come before.
  void SetRank(int rank) { rank_ = rank; }

  // Tells a worker, which runs on this host and has its job's name from a launcher, that it may
  // send. One of another job is told so, and ends this one, whose place it has taken.
  void Greet(int worker, const std::string& host, const std::string& job_name);

  // From now on a store's completed sums go to NextUpdate instead of becoming the value.
  void UseOptimizer(int32_t store);

  // Waits for the most urgent sum; false when there will be none any more.
  bool NextUpdate(Update* update);

  // The same, with those that would come next: at most so many, of which the last alone may have
  // more than so many elements. None when there will be none any more.
  std::vector<Update> NextUpdates(size_t most, size_t few_elements);

  // The value has been updated: sends it to all workers.
  void Updated(const Update& update);

  // The value could not be computed: NextUpdate gives the update back, marked as failed.
  void UpdateFailed(Update update);

  // Waits for a worker's question; false when there will be none any more.
  bool NextQuestion(Question* question);

  void Reply(const Question& question, const std::string& text, const Buffer& payload);

  // Ends the job on all processes.
  void Abort(const std::string& reason);

  // The reason of a failure, waiting for one up to a time; an empty string if there is none.
  std::string AwaitFailure(double seconds) const { return failure_.Wait(seconds); }

  // Whether the job has ended in order: all workers have left and know it, or had kLastWords to
  // hear of it. Nobody needs this server any more.
  bool Over() const;

  SchedulerLink& scheduler() { return scheduler_; }
  Recorder& recorder() { return recorder_; }

  // What the encodings of a slice have left out so far; empty where nothing is carried over.
  std::vector<float> CarriedOver(const SliceName& name) const;

  // Goes on as if so many rounds had been before, and had left this out. Throws
  // std::invalid_argument for another number of elements than the slice has.
  void CarryOver(const SliceName& name, uint64_t rounds, std::vector<float> values);

  // Goes on from another value of a slice that an optimizer updates, while none of its updates or
  // answers is under way. Throws std::invalid_argument for one of another size.
  void SetValue(const SliceName& name, const Buffer& value);

  // Has NextUpdate, NextQuestion and AwaitFailure return at once, now and later.
  void EndWaits();

  // Bytes held in values and open sums, without the optimizer's state.
  size_t held_bytes() const;

  // By worker.
  std::vector<WorkerProgress> progress() const;

  Traffic traffic() const;

  // Ends waits and stops all threads.
  void Stop();

 private:
  // Behind errors of workers that others wait for.
  static constexpr const char* kUneven =
      ": do all workers have the same number of batches? With store.joined() they need not";

  struct SliceState {
    std::unique_ptr<Reduction> reduction;
    uint64_t elements = 0;
    uint64_t round = 0;              // the one that is open; 0 gives the slice its first value
    std::map<int, uint64_t> rested;  // the one that was, by worker, when it became idle
    uint32_t step = 0;
    std::map<int, std::string> settings;  // the last that each worker has sent, if any has
    int priority = 0;
    double since = 0;       // the open round's first contribution
    double summed = 0;      // when its last one came, by Now(), while `updating`
    double opened = 0;      // when that round was
    bool updating = false;  // the round's sum is with the optimizer
  };
  struct Key {
    std::string literal, name;                     // as in its declarations
    std::map<int, SliceDeclaration> declarations;  // each worker's first one
    int32_t store = 0;
    std::map<uint32_t, SliceState> slices;  // this server's
    ScalerSharing scalers;                  // where slice 0 is
  };

  // What workers have not done that others did.
  struct Wait {
    double since = 0;                // by Now()
    std::set<int> missing, present;  // workers; none are missing where the optimizer is
    std::string what;                // in words that go behind "has not": "pushed key 1, round 2"
    bool starting = false;           // so that it has another limit
    bool uneven = false;             // whether different numbers of batches may be the reason
  };
  class Longest;  // of several waits

  // server_joins.cc: how workers come.
  void RefuseGreeting(int worker, const std::string& host, const std::string& job_name);
  void OnJoin(const Message& message);
  void Share(const Message& join);

  // server_gate.cc: what messages must fit.
  void CheckFits(const Message& message);
  void CheckPause(const Message& message);
  void CheckInit(const Message& message);
  void CheckPush(const Message& message);
  bool HasFirstValueOf(const Message& message) const;
  std::string Unread();

  // server_rounds.cc: what workers send of a slice comes together, and goes out again.
  void DeclareSlice(Key* key, const Message& message);
  std::unique_ptr<Reduction> ReductionFor(const SliceName& name,
                                          const SliceDeclaration& declaration);
  void OnInit(const Message& message);
  void OnPush(const Message& message);
  void OnPull(const Message& message);
  void OnScaler(const Message& message);
  void Contribute(Key* key, const Message& message);
  // Throws std::runtime_error for a worker that is idle, and so takes part in no round.
  void CheckWorks(int worker, const Key& key) const;
  void CompareSettings(const Key& key, const SliceState& slice) const;
  void CompleteIfAllHaveCome(const SliceName& name, Key* key, SliceState* slice);
  void Complete(const SliceName& name, Key* key, SliceState* slice);
  void QueueUpdate(const SliceName& name, const Key& key, SliceState* slice, Buffer gradient);
  void AnswerScalers(uint64_t id, Key* key);
  void Publish(const SliceName& name, SliceState* slice);
  void SendResult(int worker, const SliceName& name, uint64_t round, int priority,
                  SliceAnswer answer);

  // server_idle.cc: how rounds go without workers.
  void OnIdle(const Message& message);
  void OnSparse(const Message& meet);
  void CheckNotLeftBehind(int worker) const;
  void TellBehind();
  void CheckNotIdle(const Key& key, const SliceState& slice) const;
  void CheckNotIdle(const std::set<int>& present, const std::string& what) const;
  void Resume();
  std::set<int> MissingIn(const std::set<int>& heard) const;

  // server_limits.cc: what waits how long, and who is late.
  void CheckDeadlines();
  bool LosesWorkers(std::string* which);
  std::string UnreadBatch();
  std::string LostOnTheWay() const;
  std::string Overdue();
  std::string InTurn(const Wait& wait) const;
  void TellWaiting(const Wait& wait, const std::string& why);
  void Tell(int worker, const Message& message);
  // The one that began first, of those for any of `missing` by any of `present`, or of all where
  // these are none; without `what` where nothing waits.
  Wait LongestWait(const std::set<int>& missing, const std::set<int>& present = {}) const;
  void LookAt(const Key& key, Longest* longest) const;
  std::string Suspicion(const std::set<int>& late) const;

  // server.cc: what messages do, and how a job fails and ends.
  void OnArrival(Message message);
  void ActUpon(const Message& message);
  void OnDamage(const Damaged& damage);
  void Forward(const Message& message);
  void OnMeet(const Message& message);
  void CheckMeetings() const;
  void OnLeave(const Message& message);
  void SayFarewell();
  void CheckNotLeft(const std::set<int>& present, const std::string& what) const;
  void CheckNotLeft(const Key& key, const std::set<int>& heard, uint64_t round) const;
  void ToAll(MessageType type, const std::string& text = "");
  std::string Named(const std::string& what) const;
  Key& KeyOf(uint64_t id);
  SliceState& SliceOf(const SliceName& name);

  const ServerOptions options_;
  std::shared_ptr<Transport> transport_;
  Gate gate_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Link>> links_;  // by worker; none comes or goes
  SchedulerLink scheduler_;
  std::atomic<int> rank_{0};
  // Thread-safe, as links are.
  SendQueue<Update> updates_;
  SendQueue<Question> questions_;
  Failure failure_;
  Unreadable unreadable_{&gate_};

  mutable std::mutex mutex_;  // of all below; never held by who calls Abort
  std::unordered_map<uint64_t, Key> keys_;
  std::set<int32_t> optimized_;        // stores
  uint64_t windows_ = 0;               // rank 0's, followed
  std::map<int, std::string> hosts_;   // of the workers that are greeted
  double greeted_since_ = 0;           // when the first was
  double noticed_ = 0;                 // when workers were last told for whom they wait
  std::map<int, std::string> joined_;  // configurations by rank
  std::optional<MemoryDoor> door_;     // set by the constructor; its number never changes
  std::set<int> sharing_;              // workers with memory that this server has, too
  bool deterministic_ = false;         // as the workers want it
  Meetings meetings_;
  std::set<int> left_;
  double left_since_ = 0;      // when the first did
  double farewell_since_ = 0;  // when all had; 0 before
  std::set<int> gone_;         // workers that have heard the farewell
  IdleWorkers idle_;
  SparseRounds sparse_;                   // of server 0
  std::vector<WorkerProgress> progress_;  // what is missing is not in it

  Awake awake_;  // the watchdog's
  // The links'.
  TaskThreads sender_{1, [this](const std::exception& error) { Abort(Named(error.what())); }};
  Watchdog watchdog_;  // last: its thread uses all of the above
};

}  // namespace kvstore_ext
