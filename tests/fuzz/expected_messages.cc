// What anybody sends to ps-lite, before it reads that.
#include "security/expected_messages.h"

#include "input.h"

namespace kvstore_ext {
namespace {

bool HasCustomer(int32_t app, int32_t customer) { return app == customer; }

void Run(Input input) {
  const auto role = static_cast<PsLiteRole>(input.Below(4));
  ExpectedMessages expected(role, 2, 2, &HasCustomer);
  const std::string name = "ps" + std::to_string(input.Below(20));
  std::vector<size_t> data(input.Below(4));
  for (size_t& bytes : data) bytes = input.Take<uint8_t>();
  const std::string text = input.Rest();
  const Buffer meta = Received(text);  // the sanitizer sees what is read behind it
  const std::string_view bytes(meta.data.get(), meta.size);
  const bool fits = expected.WhyNot({name, bytes, data}, 9) == nullptr;
  PsLiteMeta read;
  if (fits && !read.Read(bytes)) std::abort();
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
