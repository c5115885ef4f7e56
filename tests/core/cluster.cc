#include "cluster.h"

#include <gtest/gtest.h>

#include <chrono>

#include "keys/gradient_codec.h"
#include "keys/plain_codec.h"
#include "slim_dp/slim_key.h"

namespace kvstore_ext {
namespace {

std::vector<std::shared_ptr<Node>> MakeNodes(int count, const ClusterOptions& options) {
  std::vector<std::shared_ptr<Node>> nodes;
  for (int rank = 0; rank < count; ++rank)
    nodes.push_back(std::make_shared<Node>(rank, options.damage));
  return nodes;
}

void Connect(const std::vector<std::shared_ptr<Node>>& from,
             const std::vector<std::shared_ptr<Node>>& to) {
  std::vector<Node*> peers;
  for (const auto& node : to) peers.push_back(node.get());
  for (const auto& node : from) node->Connect(peers);
}

std::unique_ptr<Server> MakeServer(const ClusterOptions& cluster, std::shared_ptr<Node> node,
                                   std::shared_ptr<SlimServer> slim) {
  ServerOptions options;
  options.methods["slim_dp"] = std::move(slim);
  options.workers = cluster.workers;
  options.limits = cluster.limits;
  options.job = cluster.job;
  options.job_name = "ours";
  return std::make_unique<Server>(options, std::move(node));
}

std::unique_ptr<Worker> MakeWorker(const ClusterOptions& cluster, int rank,
                                   std::shared_ptr<Node> node) {
  WorkerOptions options;
  options.rank = rank;
  options.workers = cluster.workers;
  options.servers = cluster.servers;
  options.slice_bytes = cluster.slice_bytes;
  options.limits = cluster.limits;
  options.checksum = cluster.checksum;
  return std::make_unique<Worker>(options, std::move(node));
}

std::shared_ptr<KeyCodec> MakeKeyCodec(const std::string& method, int workers,
                                       const std::shared_ptr<SlimModel>& model) {
  if (model != nullptr) return std::make_shared<SlimKey>(model, workers);
  if (method.empty()) return std::make_shared<PlainCodec>();
  return std::make_shared<GradientCodec>(method, workers, false);
}

}  // namespace

void Node::Start(MessageHandler handler) {
  thread_ = std::thread([this, handler = std::move(handler)] {
    for (Message message; Next(&message);) handler(std::move(message));
  });
}

void Node::Send(const Message& message) {
  if (message.peer == kScheduler || cut_) return;
  Message copy = message;
  copy.peer = rank_;
  if (damage_) damage_(&copy);
  peers_[message.peer]->Accept(std::move(copy));
}

void Node::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Node::Accept(Message message) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    inbox_.push_back(std::move(message));
  }
  arrived_.notify_all();
}

bool Node::Next(Message* message) {
  std::unique_lock<std::mutex> lock(mutex_);
  arrived_.wait(lock, [this] { return stopping_ || !inbox_.empty(); });
  if (stopping_) return false;
  *message = std::move(inbox_.front());
  inbox_.pop_front();
  return true;
}

Cluster::Cluster(const ClusterOptions& options)
    : options_(options),
      worker_nodes_(MakeNodes(options.workers, options)),
      server_nodes_(MakeNodes(options.servers, options)) {
  Connect(worker_nodes_, server_nodes_);
  Connect(server_nodes_, worker_nodes_);
  for (const auto& node : server_nodes_) {
    slim_servers_.push_back(std::make_shared<SlimServer>(options.limits));
    servers_.push_back(MakeServer(options, node, slim_servers_.back()));
  }
  for (int rank = 0; rank < options.workers; ++rank) {
    workers_.push_back(MakeWorker(options, rank, worker_nodes_[rank]));
    for (const auto& server : servers_) server->Greet(rank, "host" + std::to_string(rank), "ours");
  }
}

Cluster::~Cluster() {
  for (const auto& worker : workers_) worker->Stop();
  for (const auto& server : servers_) server->Stop();
}

void Cluster::Join(const std::vector<uint64_t>& elements, const std::string& method) {
  keys_ = elements.size();
  const bool slim = method.rfind("slim_dp", 0) == 0;
  for (int rank = 0; rank < options_.workers; ++rank) {
    slim_models_.push_back(slim ? std::make_shared<SlimModel>(method, rank) : nullptr);
  }
  OnEveryWorker([&](int rank, Worker* worker) {
    EXPECT_EQ(worker->AwaitServers(options_.limits.timeout), std::vector<int>()) << "said no hello";
    worker->Join();
    for (uint64_t key = 0; key < keys_; ++key) {
      SliceDeclaration declaration;
      declaration.elements = elements[key];
      declaration.name = std::to_string(key);
      worker->Declare(key, declaration, MakeKeyCodec(method, options_.workers, slim_models_[rank]));
    }
  });
}

void Cluster::ForgeFromWorker(int rank, int server, Message message) {
  message.peer = server;
  worker_nodes_[rank]->Send(message);
}

void Cluster::ForgeFromServer(int rank, int worker, Message message) {
  message.peer = worker;
  server_nodes_[rank]->Send(message);
}

void Cluster::ForgeFromScheduler(int worker, const Message& message) {
  Node scheduler(kScheduler);
  scheduler.Connect({worker_nodes_[worker].get()});
  scheduler.Send(message);
}

uint64_t Cluster::AwaitRefused(uint64_t expected) {
  for (int i = 0; i < 2000 && worker(0).refused() < expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return worker(0).refused();
}

void Cluster::OnEveryWorker(const std::function<void(int, Worker*)>& function) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options_.workers; ++rank) {
    threads.emplace_back(function, rank, workers_[rank].get());
  }
  for (auto& thread : threads) thread.join();
}

void Cluster::OnEveryKey(const std::function<void(int, Worker*, uint64_t)>& function) {
  OnEveryWorker([&](int rank, Worker* worker) {
    std::vector<std::thread> threads;
    for (uint64_t key = 0; key < keys_; ++key) threads.emplace_back(function, rank, worker, key);
    for (auto& thread : threads) thread.join();
  });
}

std::future<std::string> Begin(Worker* worker, uint64_t key, const std::vector<float>& input,
                               std::vector<float>* output, Operation::Kind kind) {
  auto ended = std::make_shared<std::promise<std::string>>();
  Operation operation;
  operation.key = key;
  operation.kind = kind;
  operation.input = reinterpret_cast<const char*>(input.data());
  if (output != nullptr) operation.output = reinterpret_cast<char*>(output->data());
  operation.priority = -static_cast<int>(key);
  operation.done = [ended](const std::string& error) { ended->set_value(error); };
  worker->Start(std::move(operation));
  return ended->get_future();
}

std::string Exchange(Worker* worker, uint64_t key, const std::vector<float>& input,
                     std::vector<float>* output) {
  return Begin(worker, key, input, output).get();
}

}  // namespace kvstore_ext
