// What anybody sends to ps-lite, before it reads that.
#include "security/expected_messages.h"

#include "input.h"

namespace kvstore_ext {
namespace {

bool HasCustomer(int32_t app, int32_t customer) { return app == customer; }

void Ask(ExpectedMessages* expected, Input* input) {
  const size_t sender = input->Below(256);
  const std::string name = sender < 20 ? "ps" + std::to_string(sender) : "asking";
  std::vector<size_t> data(input->Below(4));
  for (size_t& bytes : data) bytes = input->Take<uint8_t>();
  const size_t size = input->Below(256);
  const std::string text = size == 255 ? input->Rest() : input->Text(size);
  const Buffer meta = Received(text);  // the sanitizer sees what is read behind it
  const std::string_view bytes(meta.data.get(), meta.size);
  const int32_t own = sender < 128 ? 9 : kPsLiteNone;
  const bool fits = expected->WhyNot({name, bytes, data}, own) == nullptr;
  PsLiteMeta read;
  if (fits && !read.Read(bytes)) std::abort();
}

void Run(Input input) {
  const size_t choice = input.Below(256);
  const auto role = static_cast<PsLiteRole>(choice % 4);
  const int processes = choice < 192 ? 2 : 0;  // of each role; 0: it is not known how many
  ExpectedMessages expected(role, processes, processes, &HasCustomer, {"10.0.0.1", 8000});
  while (!input.empty()) Ask(&expected, &input);
}

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Run(kvstore_ext::Input(data, size));
  return 0;
}
