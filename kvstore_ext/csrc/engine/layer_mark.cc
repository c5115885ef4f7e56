#include "engine/layer_mark.h"

#include <algorithm>

namespace kvstore_ext {
namespace {

struct Mark {
  std::shared_ptr<Worker> worker;
  Event event;
};

// The engine calls it once the arrays are computed.
void End(void*, void* on_complete, void* param) {
  const OnComplete complete = *static_cast<OnComplete*>(on_complete);
  const auto* mark = static_cast<Mark*>(param);
  mark->worker->recorder().RecordLayer(mark->event);
  complete.callback(complete.engine, complete.param, nullptr);
}

// MXNet's number of the device on which an array lies; 0 without memory, of which an operator has
// an output that nobody needs.
int DeviceOf(NDArrayHandle array) {
  int device = 0, number = 0;
  LibMXNet::Check(LibMXNet::Get().array_context(array, &device, &number));
  return device;
}

}  // namespace

void MarkLayer(const std::shared_ptr<Worker>& worker, const std::string& layer, EventKind pass,
               std::vector<NDArrayHandle> reads, std::vector<NDArrayHandle> writes) {
  if (!worker->recorder().wants_layers()) return;
  constexpr int kCpu[] = {kCpuDevice, 0};  // MXNet's Context
  // The property with which the engine frees variables. The thread that has just computed an array
  // takes such an operation next; to wake another one would cost more than all else here.
  constexpr int kNext = 5;
  int property = kNext;
  for (auto* arrays : {&reads, &writes}) {
    const auto unknown_to_engine = [&](NDArrayHandle array) {
      const int device = DeviceOf(array);
      if (device > kCpuDevice) property = kCpuPrioritized;
      return device == 0;
    };
    arrays->erase(std::remove_if(arrays->begin(), arrays->end(), unknown_to_engine), arrays->end());
  }
  if (reads.empty() && writes.empty()) return;
  auto mark = std::make_unique<Mark>();
  mark->worker = worker;
  mark->event.kind = pass;
  mark->event.key = worker->recorder().NumberOf(layer);
  LibMXNet::Check(LibMXNet::Get().engine_push(
      End, mark.get(), [](void* param) { delete static_cast<Mark*>(param); }, kCpu, reads.data(),
      static_cast<int>(reads.size()), writes.data(), static_cast<int>(writes.size()), &property, 0,
      "kvstore_ext layer", false));
  mark.release();
}

}  // namespace kvstore_ext
