// Workers and servers of the lane in one process, over a network in memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/server.h"
#include "slim_dp/slim_model.h"
#include "slim_dp/slim_server.h"
#include "transport/transport.h"
#include "worker/worker.h"

namespace kvstore_ext {

// A node of the network; delivers what others send it, in order, on a thread of its own.
// Thread-safe, once connected.
class Node : public Transport {
 public:
  // With something that is done to all that it sends.
  explicit Node(int rank, std::function<void(Message*)> damage = nullptr)
      : rank_(rank), damage_(std::move(damage)) {}
  ~Node() override { Stop(); }

  // Those that this node sends to, by rank; they must outlive its last Send.
  void Connect(std::vector<Node*> peers) { peers_ = std::move(peers); }

  void Start(MessageHandler handler) override;
  void Send(const Message& message) override;
  void Stop() override;

  // From now on nothing that it sends arrives, as if its host were cut off; or it does again.
  void Cut(bool cut) { cut_ = cut; }

 private:
  void Accept(Message message);
  bool Next(Message* message);

  const int rank_;
  const std::function<void(Message*)> damage_;
  std::atomic<bool> cut_{false};
  std::vector<Node*> peers_;
  std::mutex mutex_;  // of all below
  std::condition_variable arrived_;
  std::deque<Message> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

struct ClusterOptions {
  int workers = 3;
  int servers = 2;
  uint64_t slice_bytes = 150000;
  Limits limits = {20, 20, 20};
  uint32_t job = 0;
  bool checksum = false;
  // Done to all that is sent, by threads that may be several.
  std::function<void(Message*)> damage = nullptr;
};

// Running workers and servers, which stop with it. Owns all of them.
class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options = {});
  ~Cluster();

  // Has all workers join, then declare keys 0, 1, ... of float32, of so many elements each, and of
  // this method: see SliceDeclaration.
  void Join(const std::vector<uint64_t>& elements, const std::string& method = "");

  // Calls a function on a thread a worker, or a worker and declared key, as the engine has them;
  // returns when all have ended.
  void OnEveryWorker(const std::function<void(int rank, Worker* worker)>& function);
  void OnEveryKey(const std::function<void(int rank, Worker* worker, uint64_t key)>& function);

  Worker& worker(int rank) { return *workers_[rank]; }
  Server& server(int rank) { return *servers_[rank]; }

  // Whether what a worker sends is lost.
  void CutWorker(int rank, bool cut) { worker_nodes_[rank]->Cut(cut); }
  void CutServer(int rank, bool cut) { server_nodes_[rank]->Cut(cut); }
  // Has a message come from one of them that has not sent it.
  void ForgeFromWorker(int rank, int server, Message message);
  void ForgeFromServer(int rank, int worker, Message message);
  void ForgeFromScheduler(int worker, const Message& message);
  // How many messages worker 0 and all servers have refused, once it is so many or after a while.
  uint64_t AwaitRefused(uint64_t expected);

  // With Slim-DP.
  SlimServer& slim_server(int rank) { return *slim_servers_[rank]; }
  SlimModel& slim_model(int rank) { return *slim_models_[rank]; }

 private:
  const ClusterOptions options_;
  uint64_t keys_ = 0;  // declared
  std::vector<std::shared_ptr<Node>> worker_nodes_, server_nodes_;
  std::vector<std::shared_ptr<SlimServer>> slim_servers_;
  std::vector<std::shared_ptr<SlimModel>> slim_models_;  // by worker; none without Slim-DP
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Begins a round of a key; the future is the reason of its failure, if any. The output may be the
// input; both have the key's elements, and must stay as Operation says. Without an output the
// result is kept for a pull.
std::future<std::string> Begin(Worker* worker, uint64_t key, const std::vector<float>& input,
                               std::vector<float>* output,
                               Operation::Kind kind = Operation::Kind::kPush);

// The same to its end.
std::string Exchange(Worker* worker, uint64_t key, const std::vector<float>& input,
                     std::vector<float>* output);

}  // namespace kvstore_ext
