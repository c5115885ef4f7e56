// Texts of small messages: who is idle, how far keys have come, windows and scalers.
#include <stdexcept>

#include "input.h"
#include "keys/idle.h"
#include "keys/shared_scaler.h"
#include "transport/window.h"

namespace kvstore_ext {
namespace {

// What can be read is what its own text says, in one form.
template <typename Notice>
void Read(const std::string& text) {
  try {
    const std::string packed = Notice::Unpack(text).Pack();
    if (Notice::Unpack(packed).Pack() != packed) std::abort();
  } catch (const std::invalid_argument&) {
  }
}

void Run(const std::string& text) {
  Read<IdleNotice>(text);
  Read<Resumption>(text);
  Read<Window>(text);
  try {
    UnpackScaler(text);
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size).Rest());
  return 0;
}
