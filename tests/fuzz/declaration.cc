// What a key's declaration says, and the options of its method: texts that come with kInit.
#include <stdexcept>

#include "codecs/codec.h"
#include "input.h"
#include "keys/slice_declaration.h"
#include "slim_dp/slim.h"

namespace kvstore_ext {
namespace {

constexpr int kWorkers = 3;

template <typename Function>
void Try(Function function) {
  try {
    function();
  } catch (const std::invalid_argument&) {
  }
}

void ReadMethod(const std::string& method) {
  Try([&] { MakeCodec(method, kWorkers); });
  Try([&] {
    const SlimOptions options = SlimOptions::Parse(method);
    if (!options.values.empty()) MakeCodec(options.values, kWorkers);
  });
}

// As a declaration, or as the text of a method alone, which mutations reach sooner.
void Run(const std::string& text) {
  ReadMethod(text);
  Try([&] {
    const SliceDeclaration declaration = SliceDeclaration::Unpack(text);
    if (declaration.Pack() != text) std::abort();
    ReadMethod(declaration.method);
  });
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size).Rest());
  return 0;
}
