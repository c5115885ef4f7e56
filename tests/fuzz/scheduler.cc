// What workers and servers, and strangers, tell the scheduler's part of the lane.
#include "server/scheduler.h"

#include "input.h"
#include "transport/process_ids.h"
#include "wire.h"

namespace kvstore_ext {
namespace {

constexpr int kServers = 2;
constexpr int kPeers = 6;
constexpr double kSilence = 30;
constexpr uint32_t kJob = 7;

void Run(Input input) {
  const auto wire = std::make_shared<Wire>();
  const uint32_t job = input.Below(2) == 0 ? 0 : kJob;
  Scheduler scheduler(wire, kServers, kSilence, job);
  while (!input.empty()) {
    Message message = AnyMessage(&input);
    const auto from = input.Take<uint8_t>();
    message.peer = PeerOf(Role::kScheduler, kPeers, from % 128);
    message.job = from < 128 ? kJob : kJob + 1;
    wire->Deliver(std::move(message));
    scheduler.Over();
  }
  scheduler.EndWaits();
  scheduler.AwaitFailure(0);
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
