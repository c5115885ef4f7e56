// A server's half of the lane: slices of all workers come in, one result goes out to each.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "aggregator.h"
#include "core_selection.h"
#include "failure.h"
#include "key.h"
#include "key_codec.h"
#include "link.h"
#include "send_queue.h"
#include "slim_slice.h"
#include "transport.h"
#include "watchdog.h"

namespace kvstore_ext {

struct ServerOptions {
  int workers = 1;
  double timeout = 300;  // seconds that a round may wait for a worker
};

// A completed sum that waits for the optimizer, which overwrites `value`.
struct Update {
  uint64_t key = 0;
  uint32_t slice = 0;
  int32_t store = 0;
  std::string name;
  DType dtype = DType::kFloat32;
  size_t elements = 0;
  uint64_t round = 0;    // how often this slice has been updated, this time included
  uint32_t step = 0;     // how often rank 0's most updated key had been, when it pushed
  std::string settings;  // the last that rank 0 has sent with this slice; see Operation
  bool failed = false;   // computing the value failed; MXNet raises the reason for who reads it
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

// Holds its slices of the parameters. Without an optimizer a slice's value is its last sum.
// Thread-safe.
class Server {
 public:
  Server(const ServerOptions& options, std::shared_ptr<Transport> transport);
  ~Server();

  // ps-lite gives ranks only once the cluster stands, but messages may come before.
  void SetRank(int rank) { rank_ = rank; }

  // Tells a worker that it may send.
  void Greet(int worker);

  // From now on a store's completed sums go to NextUpdate instead of becoming the value.
  void UseOptimizer(int32_t store);

  // Waits for the most urgent sum; false when there will be none any more.
  bool NextUpdate(Update* update);

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

  // What encoded sums of a slice have left out so far; empty where nothing is carried over.
  std::vector<float> Carried(uint64_t key, uint32_t slice) const;

  // Goes on as if so many rounds had been before, and had left this out.
  void SetCarried(uint64_t key, uint32_t slice, uint64_t drawn, std::vector<float> carried);

  // What a selection of the core needs once a round of Slim-DP is complete: so many slices of a
  // store. Throws std::runtime_error where they are not within the timeout.
  CoreSelection AwaitSelection(int32_t store, uint64_t round, size_t slices);

  // Tells all workers the cores that a selection has chosen.
  void SetCores(uint64_t selection, std::map<CoreSelection::SliceName, Subset> cores);

  // Goes on with a slice of Slim-DP as another run left it: its parameters, and its cores by
  // selection. Throws std::invalid_argument for other sizes than the slice's.
  void ResumeSlim(uint64_t key, uint32_t slice, const Buffer& parameters,
                  std::map<uint64_t, Subset> cores);

  // Has NextUpdate, NextQuestion and AwaitFailure return at once, now and later.
  void EndWaits();

  // Bytes held in values and open sums, without the optimizer's state.
  size_t held_bytes() const;

  // Ends waits and stops all threads.
  void Stop();

 private:
  struct SliceState {
    uint64_t round = 0;           // the one that is open; 0 gives the slice its first value
    uint64_t earlier_rounds = 0;  // of an earlier run, whose random numbers have been used
    uint32_t step = 0;
    std::map<int, std::string> settings;  // the last that each worker has sent, if any has
    std::shared_ptr<const Codec> codec;
    std::shared_ptr<SlimSlice> slim;  // the codec, with Slim-DP
    std::vector<float> carried;       // what encoded sums have left out, with error feedback
    uint64_t offset = 0;              // in the key, in elements
    int priority = 0;
    double since = 0;  // the open round's first contribution
    int root = 0;      // of the open round, then of the value: see Operation
    Aggregator sum;
    bool updating = false;
    Buffer value;                          // or the last sum, without an optimizer
    Encoding encoding = Encoding::kPlain;  // of the value
  };
  // The workers' scalers of a key in one round, where slice 0 is.
  struct Scalers {
    uint64_t round = 1;  // the one that is open
    std::map<int, float> heard;
    Encoding encoding = Encoding::kEncoded;  // as rank 0 wants it
    double since = 0;                        // the first one's arrival

    std::set<int> Senders() const {
      std::set<int> ranks;
      for (const auto& scaler : heard) ranks.insert(scaler.first);
      return ranks;
    }
  };
  struct Key {
    std::string name;
    std::map<int, std::string> descriptions;  // by rank
    DType dtype = DType::kFloat32;
    int32_t store = 0;
    std::map<uint32_t, SliceState> slices;  // this server's
    std::map<uint32_t, size_t> elements;    // of each
    Scalers scalers;
  };

  void OnMessage(const Message& message);
  void OnJoin(const Message& message);
  void OnInit(const Message& message);
  void OnPush(const Message& message);
  void OnPull(const Message& message);
  void OnScaler(const Message& message);
  void EncodeSum(uint64_t id, SliceState* slice, DType dtype, size_t elements);
  void OnCore(const Message& message);
  bool HasCoreOf(const Message& message, const SliceState& slice);
  void SendCore(int worker, const CoreSelection::SliceName& name, uint64_t selection,
                Encoding encoding, const Buffer& members);
  void Forward(const Message& message);
  void OnLeave(int worker);
  void Describe(Key* key, const Message& message);
  void Contribute(uint64_t id, Key* key, uint32_t index, const Message& message);
  void Add(const Message& message, bool has_values, SliceState* slice);
  void CheckRoot(const Key& key, const SliceState& slice, const Message& message) const;
  void CheckNotLeft(const Key& key, const std::set<int>& heard, uint64_t round) const;
  void CompareSettings(const Key& key, const SliceState& slice) const;
  void Complete(uint64_t id, Key* key, uint32_t index);
  void Publish(uint64_t id, uint32_t index, SliceState* slice);
  void SendValue(int worker, uint64_t id, uint32_t index, uint64_t round, const SliceState& slice,
                 Encoding encoding, const Buffer& value);
  void ToAll(MessageType type, const std::string& text = "");
  void CheckDeadlines();
  std::string Overdue(double limit) const;

  const ServerOptions options_;
  std::shared_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Link>> links_;  // by worker
  std::atomic<int> rank_{0};
  SendQueue<Update> updates_;
  SendQueue<Question> questions_;
  Failure failure_;

  mutable std::mutex mutex_;           // of all below
  std::condition_variable completed_;  // a round that a selection may wait for
  bool ending_ = false;
  std::unordered_map<uint64_t, Key> keys_;
  std::set<int32_t> optimized_;  // stores
  uint64_t windows_ = 0;         // rank 0's, followed
  std::set<int> greeted_;
  std::map<int, std::string> joined_;  // configurations by rank
  bool deterministic_ = false;         // as the workers want it
  double joining_since_ = 0;
  std::set<int> left_;

  Watchdog watchdog_;  // last: its thread uses all of the above
};

}  // namespace kvstore_ext
