#include "engine/layer_watch.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

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

  // The worker, if it is traced and the operator has not just been seen: one with several outputs
  // comes several times. It runs later, perhaps at another step.
  std::shared_ptr<Worker> Seen(const std::string& node) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto worker = worker_.lock();
    if (worker == nullptr || !worker->recorder().is_open() || node == last_) return nullptr;
    last_ = node;
    return worker;
  }

  // Puts the operator that ends now behind the last.
  void SetTimes(Event* event) {
    std::lock_guard<std::mutex> lock(mutex_);
    event->begin = last_end_;
    event->end = last_end_ = NowInNanoseconds();
  }

 private:
  std::mutex mutex_;  // of all below
  std::weak_ptr<Worker> worker_;
  std::string last_;
  int64_t last_end_ = 0;  // 0 before the first, whose event has no length
};

Watch& OfThisProcess() {
  static Watch watch;
  return watch;
}

struct Mark {
  std::shared_ptr<Worker> worker;
  Event event;
};

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

// The engine calls it once the output is computed.
void End(void*, void* on_complete, void* param) {
  const OnComplete complete = *static_cast<OnComplete*>(on_complete);
  const auto* mark = static_cast<Mark*>(param);
  Event event = mark->event;
  OfThisProcess().SetTimes(&event);
  mark->worker->recorder().Record(event);
  complete.callback(complete.engine, complete.param, nullptr);
}

void OnOperator(const char* name, const char*, NDArrayHandle output) {
  const LibMXNet& mx = LibMXNet::Get();
  std::string node = name;
  const bool backward = CutToNode(&node);
  const std::string seen = backward ? node + kBackward : node;
  if (auto worker = OfThisProcess().Seen(seen)) {
    auto mark = std::make_unique<Mark>();
    mark->event.kind = backward ? EventKind::kBackward : EventKind::kForward;
    mark->event.key = worker->recorder().NumberOf(node);
    mark->worker = std::move(worker);
    constexpr int kCpu[] = {1, 0}, kCpuPrioritized = 3;  // as in engine.cc
    const int status = mx.engine_push(
        End, mark.get(), [](void* param) { delete static_cast<Mark*>(param); }, kCpu, &output, 1,
        nullptr, 0, &kCpuPrioritized, 0, "kvstore_ext layer", false);
    if (status == 0) mark.release();
  }
  mx.array_free(output);
}

}  // namespace

void WatchLayers(std::shared_ptr<Worker> worker, void* network) {
  OfThisProcess().Follow(std::move(worker));
  if (LibMXNet::Get().watch_operators(network, OnOperator, false) != 0) {
    throw std::runtime_error(LibMXNet::Get().last_error());
  }
}

}  // namespace kvstore_ext
