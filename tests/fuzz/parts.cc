// Parts of slices, in any order and of any sizes, come together only to what they said.
#include <cstdlib>
#include <stdexcept>

#include "held_messages.h"
#include "input.h"
#include "transport/link.h"

namespace kvstore_ext {
namespace {

constexpr int kPeer = 3;

// One of few slices, so that parts meet others.
Message AnyPart(Input* input) {
  Message part = ControlMessage(MessageType::kPush, input->Text(input->Below(4)));
  if (input->Below(16) == 0) part.header.type = MessageType::kInit;
  part.peer = kPeer;
  part.header.key = input->Below(2);
  part.header.offset = static_cast<uint32_t>(input->Below(64));
  part.header.whole = static_cast<uint32_t>(input->Below(64));
  part.header.credit = input->Take<uint16_t>();
  const size_t bytes = input->Below(64);
  part.payload = Received(std::string(bytes, static_cast<char>(part.header.offset)));
  return part;
}

void Run(Input input) {
  const auto wire = std::make_shared<HeldMessages>();
  Gate gate(Side::kServer);
  Link link(wire, kPeer, nullptr, nullptr, nullptr, &gate);
  Batch batch;
  const auto receive = [&](Message message) {
    if (!gate.Admits(message)) return;
    try {
      link.Receive(std::move(message), [](const Message& whole) {
        if (whole.payload.size != whole.header.whole) std::abort();
        // Each byte is one that came.
        for (size_t i = 0; i < whole.payload.size; ++i) {
          if (whole.payload.data.get()[i] < 0 || whole.payload.data.get()[i] >= 64) std::abort();
        }
      });
    } catch (const Unfit&) {
    }
  };
  while (!input.empty()) {
    const size_t way = input.Below(8);
    Message part = AnyPart(&input);
    if (way == 0) {
      batch.Add(std::move(part));
    } else if (way == 1 && !batch.empty()) {
      batch.Add(std::move(part));
      Message together = batch.Take();
      together.peer = kPeer;
      receive(std::move(together));
    } else {
      receive(std::move(part));
    }
  }
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
