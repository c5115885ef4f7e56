// Workers and servers of the lane in one process, for the sanitizers: make sanitize.
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <thread>

#include "gradient_codec.h"
#include "plain_codec.h"
#include "server.h"
#include "slim_key.h"
#include "slim_server.h"
#include "worker.h"

namespace kvstore_ext {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "lane_test: %s\n", what);
  std::exit(1);
}

// A node of a network in memory; delivers what others send it, in order, on a thread of its own.
class Node : public Transport {
 public:
  explicit Node(int rank) : rank_(rank) {}
  ~Node() override { Stop(); }

  void Connect(std::vector<Node*> peers) { peers_ = std::move(peers); }

  void Start(MessageHandler handler) override {
    thread_ = std::thread([this, handler = std::move(handler)] {
      for (Message message; Next(&message);) handler(std::move(message));
    });
  }

  void Send(const Message& message) override {
    if (message.peer == kScheduler) return;
    Message copy = message;
    copy.peer = rank_;
    peers_[message.peer]->Accept(std::move(copy));
  }

  void Stop() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Accept(Message message) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      inbox_.push_back(std::move(message));
    }
    arrived_.notify_all();
  }

  bool Next(Message* message) {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait(lock, [this] { return stopping_ || !inbox_.empty(); });
    if (stopping_) return false;
    *message = std::move(inbox_.front());
    inbox_.pop_front();
    return true;
  }

  const int rank_;
  std::vector<Node*> peers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

constexpr int kWorkers = 3;
constexpr int kServers = 2;
constexpr uint64_t kKeys = 12;

// From none to a few slices, of which those above 75,000 bytes travel in parts.
uint64_t ElementsOf(uint64_t key) { return key * key * 1370; }

struct Cluster {
  std::vector<std::shared_ptr<Node>> worker_nodes, server_nodes;
  std::vector<std::shared_ptr<SlimServer>> slim_servers;
  std::vector<std::shared_ptr<SlimModel>> slim_models;  // by worker; none without Slim-DP
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::unique_ptr<Worker>> workers;

  Cluster() {
    std::vector<Node*> worker_pointers, server_pointers;
    for (int rank = 0; rank < kWorkers; ++rank) {
      worker_nodes.push_back(std::make_shared<Node>(rank));
      worker_pointers.push_back(worker_nodes.back().get());
    }
    for (int rank = 0; rank < kServers; ++rank) {
      server_nodes.push_back(std::make_shared<Node>(rank));
      server_pointers.push_back(server_nodes.back().get());
    }
    for (auto& node : worker_nodes) node->Connect(server_pointers);
    for (auto& node : server_nodes) node->Connect(worker_pointers);
    for (auto& node : server_nodes) {
      ServerOptions options;
      options.workers = kWorkers;
      options.timeout = 20;
      slim_servers.push_back(std::make_shared<SlimServer>(options.timeout));
      options.methods["slim_dp"] = slim_servers.back();
      servers.push_back(std::make_unique<Server>(options, node));
    }
    for (int rank = 0; rank < kWorkers; ++rank) {
      WorkerOptions options;
      options.rank = rank;
      options.workers = kWorkers;
      options.servers = kServers;
      options.slice_bytes = 150000;
      options.timeout = 20;
      workers.push_back(std::make_unique<Worker>(options, worker_nodes[rank]));
      for (auto& server : servers) server->Greet(rank);
    }
  }

  ~Cluster() {
    for (auto& worker : workers) worker->Stop();
    for (auto& server : servers) server->Stop();
  }
};

// Runs one operation and returns the reason of its failure, if any.
std::string Exchange(Worker* worker, uint64_t key, const std::vector<float>& input,
                     std::vector<float>* output) {
  auto ended = std::make_shared<std::promise<std::string>>();
  Operation operation;
  operation.key = key;
  operation.kind = Operation::Kind::kPush;
  operation.input = reinterpret_cast<const char*>(input.data());
  operation.output = reinterpret_cast<char*>(output->data());
  operation.priority = -static_cast<int>(key);
  operation.done = [ended](const std::string& error) { ended->set_value(error); };
  worker->Start(std::move(operation));
  return ended->get_future().get();
}

// One thread a key and worker, as the engine has them.
template <typename Function>
void OnEveryKey(Cluster* cluster, Function function) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorkers; ++rank) {
    for (uint64_t key = 0; key < kKeys; ++key) {
      threads.emplace_back([=] { function(rank, cluster->workers[rank].get(), key); });
    }
  }
  for (auto& thread : threads) thread.join();
}

std::shared_ptr<KeyCodec> MakeKeyCodec(const std::string& method,
                                       const std::shared_ptr<SlimModel>& model) {
  if (model != nullptr) return std::make_shared<SlimKey>(model, kWorkers);
  if (method.empty()) return std::make_shared<PlainCodec>();
  return std::make_shared<GradientCodec>(method, kWorkers, false);
}

void Join(Cluster* cluster, const std::string& compression) {
  const bool slim = compression.rfind("slim_dp", 0) == 0;
  for (int rank = 0; rank < kWorkers; ++rank) {
    cluster->slim_models.push_back(slim ? std::make_shared<SlimModel>(compression, rank) : nullptr);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorkers; ++rank) {
    threads.emplace_back([&, rank] {
      auto& worker = cluster->workers[rank];
      Require(worker->AwaitServers(20).empty(), "a server did not say hello");
      worker->Join();
      for (uint64_t key = 0; key < kKeys; ++key) {
        SliceDeclaration declaration;
        declaration.elements = ElementsOf(key);
        declaration.name = std::to_string(key);
        worker->Declare(key, declaration, MakeKeyCodec(compression, cluster->slim_models[rank]));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// What every method sends as it is: each element as large as the others, on all workers.
float ValueOf(size_t i) { return i % 3 == 0 ? -4.0f : 4.0f; }

void EveryWorkerGetsTheSumOfEveryRound(const std::string& compression) {
  Cluster cluster;
  Join(&cluster, compression);
  const bool plain = compression.empty();
  OnEveryKey(&cluster, [plain](int rank, Worker* worker, uint64_t key) {
    std::vector<float> input(ElementsOf(key));
    for (size_t i = 0; i < input.size(); ++i) {
      input[i] = plain ? static_cast<float>(i % 1000) * (rank + 1) : ValueOf(i);
    }
    std::vector<float> output(input.size());
    for (int round = 0; round < 15; ++round) {
      const std::string error = Exchange(worker, key, input, &output);
      Require(error.empty(), ("a round failed: " + error).c_str());
      // Rank 0's value, then 1 + 2 + 3 of them, or 1 + 1 + 1.
      const float factor = round == 0 ? 1.0f : plain ? 6.0f : 3.0f;
      for (size_t i = 0; i < output.size(); ++i) {
        const float value = plain ? static_cast<float>(i % 1000) : ValueOf(i);
        Require(output[i] == value * factor, "a sum is wrong");
      }
    }
  });
  std::vector<std::thread> threads;
  for (auto& worker : cluster.workers) threads.emplace_back([&worker] { worker->Leave(); });
  for (auto& thread : threads) thread.join();
}

void AnAbortEndsEveryOperationEverywhere(const std::string& compression) {
  // A failed operation's input may still be on its way, so it lives longer than the cluster.
  std::vector<std::vector<float>> inputs;
  for (uint64_t key = 0; key < kKeys; ++key) inputs.emplace_back(ElementsOf(key), 1.0f);
  Cluster cluster;
  Join(&cluster, compression);
  std::thread aborting([&cluster] { cluster.workers[2]->Abort("as the test wants"); });
  OnEveryKey(&cluster, [&inputs](int, Worker* worker, uint64_t key) {
    std::vector<float> output(ElementsOf(key));
    std::string error;
    while (error.empty()) error = Exchange(worker, key, inputs[key], &output);
    Require(error == "as the test wants", "an operation failed for another reason");
  });
  aborting.join();
}

// Every fourth element is in the core: it is larger than the others by one, and stays so.
float SlimValueOf(size_t i) { return static_cast<float>(i % 4 + 1); }

// Rank 0's part in what CoreSelector does in Python: chooses what is above a size.
void SelectCores(Cluster* cluster, uint64_t selections, uint64_t rounds) {
  std::map<int, size_t> slices;
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (const Slice& slice : cluster->workers[0]->Slices(key)) ++slices[slice.server];
  }
  for (uint64_t selection = 0; selection < selections; ++selection) {
    const float above = 3.5F + static_cast<float>(selection * rounds);
    uint32_t bits;
    std::memcpy(&bits, &above, sizeof bits);
    for (int server = 0; server < kServers; ++server) {
      CoreSelection chosen =
          cluster->slim_servers[server]->AwaitSelection(0, selection * rounds, slices[server]);
      chosen.Weigh(1);
      cluster->slim_servers[server]->SetCores(selection, chosen.Choose(bits, {}));
    }
  }
}

void TheCoreOfAllWorkersStaysTheSame() {
  Cluster cluster;
  // A core each 3 rounds, a round late.
  Join(&cluster, "slim_dp alpha=0.5 beta=0.25 q=3 core_delay=1 server_lr=1 seed=0 explorer=seed");
  size_t elements = 0;
  for (uint64_t key = 0; key < kKeys; ++key) elements += ElementsOf(key);
  for (auto& model : cluster.slim_models) model->SetSizes(elements / 4, elements / 2);
  std::thread selecting([&cluster] { SelectCores(&cluster, 4, 3); });
  OnEveryKey(&cluster, [](int, Worker* worker, uint64_t key) {
    std::vector<float> local(ElementsOf(key));
    for (size_t i = 0; i < local.size(); ++i) local[i] = SlimValueOf(i);
    for (int round = 0; round < 11; ++round) {
      if (round > 0) {
        for (float& value : local) value += 1;
      }
      const std::string error = Exchange(worker, key, local, &local);
      Require(error.empty(), ("a round failed: " + error).c_str());
      for (size_t i = 3; i < local.size(); i += 4) {
        Require(std::fabs(local[i] - SlimValueOf(i) - round) < 1e-3, "the core is wrong");
      }
    }
  });
  selecting.join();
}

}  // namespace
}  // namespace kvstore_ext

int main() {
  for (const char* compression :
       {"", "terngrad clip_sigma=0 scaler_sharing=1 seed=0 error_feedback=0",
        "qsgd bits=8 bucket=500 norm=max seed=0 error_feedback=1"}) {
    kvstore_ext::EveryWorkerGetsTheSumOfEveryRound(compression);
    kvstore_ext::AnAbortEndsEveryOperationEverywhere(compression);
  }
  kvstore_ext::TheCoreOfAllWorkersStaysTheSame();
  std::puts("lane_test: passed");
}
