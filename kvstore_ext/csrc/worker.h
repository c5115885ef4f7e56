// A worker's half of the lane: slices go out by priority, results come back into place.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "dtype.h"
#include "failure.h"
#include "key.h"
#include "key_codec.h"
#include "link.h"
#include "order.h"
#include "send_queue.h"
#include "slicer.h"
#include "slim_key.h"
#include "statistics.h"
#include "trace.h"
#include "transport.h"
#include "watchdog.h"

namespace kvstore_ext {

struct WorkerOptions {
  int rank = 0;
  int workers = 1;
  int servers = 1;
  size_t slice_bytes = 200000;
  size_t window_bytes = 0;  // a peer; 0: measured and adapted. Rank 0's holds for the job
  double timeout = 300;     // seconds that any wait may take
  bool deterministic = false;
  std::string configuration;  // what must be equal on all workers, as text that an error can show
};

// What a store asks of a key. With `contributes` it opens the key's next round: round 0 sets the
// value to rank 0's input, later ones send the input as a gradient. With `out` it ends when the
// round's result lies there; without, the result is kept for a later operation that only reads.
struct Operation {
  uint64_t key = 0;
  bool contributes = false;
  const char* input = nullptr;  // the key's elements; stays valid and unchanged until `done`, and
                                // valid for ever if that tells of a failure
  char* output = nullptr;       // likewise; may be the input
  int priority = 0;             // the caller's, used until the order is learned
  bool plain = false;           // not compressed this time, whatever the key's codec
  int root = 0;                 // r > 0: nothing is added; worker r - 1's input goes to all others
  uint32_t step = 0;            // how often the worker has updated its most updated key
  std::string settings;  // of the optimizer, from this round on: rank 0's for the servers', or
                         // each worker's own, which must be equal; empty: as before
  double pushed = 0;     // when the store was asked, by Now()
  // Called exactly once, from any thread, with the reason of a failure or an empty string.
  std::function<void(const std::string&)> done;
};

struct Answer {
  std::string text;
  Buffer payload;
};

// Thread-safe. A key's operations must come one after the other: the next after the last's `done`.
class Worker {
 public:
  Worker(const WorkerOptions& options, std::shared_ptr<Transport> transport);
  ~Worker();

  // Waits until all servers have said hello; returns the ranks of those that have not in time.
  std::vector<int> AwaitServers(double seconds);

  // Compares configurations with the other workers; throws std::runtime_error where they differ or
  // somebody does not come.
  void Join();

  // Makes a key known: its slices' declaration, but for the elements, which are the key's. A key is
  // declared once, with the same arguments on all workers. A gradient to be compressed that is not
  // finite has the round not count, or, where it `raises`, ends the job.
  void Declare(uint64_t key, const SliceDeclaration& declaration, bool raises = false);

  // Where a declared key's slices are.
  std::vector<Slice> Slices(uint64_t key) { return Find(key)->slices; }

  // The codec of a compressed key; throws std::out_of_range for others, or one of another kind.
  template <typename Kind>
  Kind& CodecOf(uint64_t key) {
    const Key* found = Find(key);
    auto* codec = dynamic_cast<Kind*>(found->codec.get());
    if (codec != nullptr) return *codec;
    throw std::out_of_range("key " + found->declaration.name + " is not compressed so");
  }

  // The keys of a store under Slim-DP; throws std::out_of_range where there are none.
  std::shared_ptr<SlimModel> SlimModelOf(int32_t store) const;

  // How many rounds a key has begun.
  uint64_t RoundsOf(uint64_t key);

  Totals totals() const { return statistics_.totals(); }

  // Bytes of payload, text and header by type of message: sent to all servers, and received.
  Traffic traffic() const;

  // Asks a server's Python something; returns the question's number.
  uint64_t Ask(int server, const std::string& text, const Buffer& payload);

  // Waits for the answer to a question, once; throws std::runtime_error where none comes in time.
  Answer AwaitAnswer(uint64_t question);

  // Begins an operation on a declared key.
  void Start(Operation operation);

  // Waits for all operations, tells the servers, and waits until the other workers have left too.
  // Throws std::runtime_error where that fails.
  void Leave();

  // Ends all operations with an error, here and on every other process.
  void Abort(const std::string& reason);

  // Sends nothing any more, and ends open operations with an error. What still arrives is taken, as
  // ps-lite demands while it runs.
  void Hush();

  // Hushes and stops all threads.
  void Stop();

  std::string failure() const { return failure_.reason(); }
  Trace& trace() { return trace_; }

  // Keys in the order in which they are needed; empty until it is known.
  std::vector<uint64_t> order() const;

 private:
  struct Key;
  struct Result {
    Buffer payload;
    Encoding encoding = Encoding::kPlain;
  };
  // What a key sends in a round, or asks for where it does not contribute.
  struct Round {
    Key* key = nullptr;
    uint64_t id = 0;
    uint64_t number = 0;
    bool contributes = false;
    const char* input = nullptr;
    int root = 0;
    uint32_t step = 0;
    std::string settings;
    Encoding encoding = Encoding::kPlain;
    float scaler = 0;
  };
  // A slice that waits for one of the threads that encode.
  struct Turn {
    enum class Work { kEncode, kPrepareNext, kWrite };

    Turn() = default;
    Turn(std::shared_ptr<const Round> of_round, const Slice* of_slice, Work to_do = Work::kEncode)
        : round(std::move(of_round)), slice(of_slice), work(to_do) {}

    std::shared_ptr<const Round> round;
    const Slice* slice = nullptr;
    Work work = Work::kEncode;
    Result result;  // to be written, there, even if the operation has failed meanwhile
    char* output = nullptr;
  };
  struct Key {
    SliceDeclaration declaration;
    std::vector<Slice> slices;
    std::unique_ptr<KeyCodec> codec;  // nothing without compression
    bool raises = false;
    std::atomic<bool> priority_learned{false};
    std::atomic<int> priority{0};

    std::mutex mutex;     // of all below
    uint64_t rounds = 0;  // begun
    bool busy = false;
    Operation operation;
    std::vector<bool> arrived;  // slices of the last round
    size_t missing = 0;
    bool shares = false;                   // the last round waits for the workers' largest scaler
    Round sharing;                         // that one
    std::shared_ptr<const Round> encoded;  // the last round whose slices have been, or will be
    double since = 0;
    std::vector<Result> kept;  // slices of a result that no operation has taken yet
  };

  void OnMessage(Message message);
  void ActUpon(const Message& message);
  void OnResult(const Message& message);
  void WriteInTurn(const Turn& turn);
  void Arrived(Key* key, Encoding encoding, std::unique_lock<std::mutex>* lock);
  void OnScaler(const Message& message);
  void OnCore(const Message& message);
  void Compress(Round round, bool plain);
  void EncodeInTurn(const Round& round);
  static bool IsSmall(const Key& key);
  void Encode();
  void PrepareNext(Key* key);
  void TryPrepareNext(const Turn& turn);
  bool Park(const Turn& turn);
  void SendRound(const Round& round);
  void TrySendSlice(const Round& round, const Slice& slice);
  void SendSlice(const Round& round, const Slice& slice);
  Buffer PayloadOf(const Round& round, const Slice& slice);
  void Write(const Key& key, const Slice& slice, const Result& result, char* output);
  void TakeKept(Key* key, std::unique_lock<std::mutex>* lock);
  void Finish(Key* key, std::unique_lock<std::mutex>* lock, const std::string& error);
  void SetOrder(const std::vector<uint64_t>& order);
  void AnnounceOrder(const std::vector<uint64_t>& order);
  void AnnounceWindow(const Window& window);
  void EndOperations(const std::string& reason);
  void CheckDeadlines();
  std::string Overdue(Key* key);
  std::unique_ptr<KeyCodec> MakeCodec(uint64_t id, const SliceDeclaration& declaration);
  void AwaitAll(const std::set<int>& servers, const char* what);
  Key* Find(uint64_t id);
  std::vector<Key*> Keys();

  const WorkerOptions options_;
  std::shared_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Link>> links_;  // by server
  uint64_t windows_ = 0;                      // announced, by rank 0's estimator; or followed
  std::atomic<bool> joined_{false};
  Failure failure_;
  Trace trace_;
  OrderLearner learner_;
  Statistics statistics_;
  SendQueue<Turn> encodings_;
  std::vector<std::thread> encoders_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::unordered_map<uint64_t, std::unique_ptr<Key>> keys_;
  std::map<int32_t, std::shared_ptr<SlimModel>> slim_models_;  // by store
  std::vector<Turn> parked_;                                   // until all cores are known
  std::vector<uint64_t> order_;
  std::set<int> greeted_, welcomed_, parted_;  // servers that have said so
  int open_operations_ = 0;
  uint64_t questions_ = 0;  // asked so far
  std::map<uint64_t, Answer> answers_;

  Watchdog watchdog_;  // last: its thread uses all of the above
};

}  // namespace kvstore_ext
