// Who may send what: any header, from any process's number, to each of the three sides.
#include "transport/gate.h"

#include <cstdlib>

#include "input.h"
#include "transport/process_ids.h"

namespace kvstore_ext {
namespace {

constexpr int kPeers = 5;

void Pass(Role role, Side side, int id, Message message) {
  static Gate gates[] = {Gate(Side::kWorker), Gate(Side::kServer), Gate(Side::kScheduler)};
  Gate& gate = gates[static_cast<size_t>(side)];
  message.peer = PeerOf(role, kPeers, id);
  if (!gate.Admits(message)) return;
  const Header& header = message.header;
  const bool is_known = message.peer == kScheduler || (message.peer >= 0 && message.peer < kPeers);
  const bool fits = size_t{header.offset} + message.payload.size <= header.whole &&
                    header.encoding <= Encoding::kSkipped;
  if (!is_known || !fits || PeerId(role, message.peer) != id) std::abort();
}

void Run(Input input) {
  const auto id = input.Take<int32_t>();
  const Message message = AnyMessage(&input);
  Described(message);
  Pass(Role::kWorker, Side::kWorker, id, message);
  Pass(Role::kServer, Side::kServer, id, message);
  Pass(Role::kScheduler, Side::kScheduler, id, message);
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
