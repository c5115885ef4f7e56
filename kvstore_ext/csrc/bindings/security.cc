// What Python sees of a job's encryption.
#include "bindings/bindings.h"
#include "security/encryption.h"
#include "security/foreign_messages.h"
#include "security/strangers.h"

namespace kvstore_ext {

void BindSecurity(py::module_* module) {
  module->def("harden", &Harden);
  module->def("encrypt", [](const std::string& path, const py::bytes& secret) {
    return Encrypt(path, secret);
  });
  module->def("cipher_library", &CipherLibrary);
  module->def("strangers", &Strangers);
  module->def("foreign_messages", &ForeignMessages);
}

}  // namespace kvstore_ext
