#include "engine/layer_watch.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>

#include "engine/layer_mark.h"
#include "transport/libmxnet.h"

namespace kvstore_ext {
namespace {

constexpr const char* kBackward = "_backward";

// MXNet tells a watcher the operator's name, and nothing that would be its own.
class Watch {
 public:
  void Follow(std::shared_ptr<Worker> worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    worker_ = std::move(worker);
  }

  // The worker, unless the operator has just been seen: one with several outputs comes several
  // times.
  std::shared_ptr<Worker> Seen(const std::string& node) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (node == last_) return nullptr;
    last_ = node;
    return worker_.lock();
  }

 private:
  std::mutex mutex_;  // of all below
  std::weak_ptr<Worker> worker_;
  std::string last_;
};

Watch& OfThisProcess() {
  static Watch watch;
  return watch;
}

// "conv0_fwd_output" is an output of conv0_fwd, and "conv0_fwd_backward_0" one of its backward
// operator's. Returns whether it is that, and cuts the name to the node's. What adds gradients up,
// or stands for those that are zero, has names of MXNet's own.
bool CutToNode(std::string* name) {
  name->resize(std::min(name->size(), name->rfind('_')));
  const size_t backward = name->rfind(kBackward);
  if (backward == std::string::npos) {
    return *name == "sum_grad" || *name == "zeros" || *name == "zeros_without_dtype";
  }
  name->resize(backward);
  return true;
}

// MXNet has been given the operator; the output is the callee's.
void OnOperator(const char* name, NDArrayHandle output) {
  std::string node = name;
  const bool backward = CutToNode(&node);
  if (const auto worker = OfThisProcess().Seen(backward ? node + kBackward : node)) {
    const EventKind pass = backward ? EventKind::kBackward : EventKind::kForward;
    try {
      MarkLayer(worker, node, pass, {output}, {});
    } catch (const std::exception&) {  // in the midst of MXNet's C code; the trace lacks it then
    }
  }
  LibMXNet::Get().array_free(output);
}

}  // namespace

void WatchNetwork(std::shared_ptr<Worker> worker, void* network) {
  OfThisProcess().Follow(std::move(worker));
  const auto tell = [](const char* name, const char*, NDArrayHandle output) {
    OnOperator(name, output);
  };
  LibMXNet::Check(LibMXNet::Get().watch_operators(network, tell, false));
}

void WatchExecutor(std::shared_ptr<Worker> worker, void* executor) {
  OfThisProcess().Follow(std::move(worker));
  const auto tell = [](const char* name, NDArrayHandle output, void*) { OnOperator(name, output); };
  LibMXNet::Check(LibMXNet::Get().watch_executor(executor, tell, nullptr, false));
}

}  // namespace kvstore_ext
