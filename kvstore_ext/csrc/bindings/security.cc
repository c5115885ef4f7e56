// What Python sees of a job's encryption.
#include "bindings/bindings.h"
#include "security/encryption.h"
#include "security/strangers.h"

namespace kvstore_ext {

void BindSecurity(py::module_* module) {
  module->def("harden", &Harden);
  module->def("encrypt", [](const std::string& path, const py::bytes& secret) {
    return Encrypt(path, secret);
  });
  module->def("strangers", &Strangers);
}

}  // namespace kvstore_ext
