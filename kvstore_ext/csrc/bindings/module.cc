// The module kvstore_ext._core: what Python sees of the core. Its typed face is _core.pyi.
//
// Calls that wait release the GIL, and so do those that take a lock for which they may wait long.
// C++ exceptions become Python's: invalid_argument a ValueError, out_of_range an IndexError,
// runtime_error a RuntimeError. No thread of the core calls into Python.
#include "bindings/bindings.h"
#include "keys/slicer.h"
#include "transport/local_transport.h"
#include "transport/pslite.h"
#include "transport/scheduler_link.h"

namespace kvstore_ext {
namespace {

// How keys are cut, for simulations.
void BindSlicer(py::module_* module) {
  module->def(
      "slice_key",
      [](uint64_t key, uint64_t elements, double element_bytes, size_t slice_bytes, int servers,
         uint64_t alignment) {
        return ToList(SliceKey(key, elements, element_bytes, slice_bytes, servers, alignment));
      },
      py::arg("key"), py::arg("elements"), py::arg("element_bytes"), py::arg("slice_bytes"),
      py::arg("servers"), py::arg("alignment") = 1);
}

}  // namespace
}  // namespace kvstore_ext

PYBIND11_MODULE(_core, module) {
  using namespace kvstore_ext;
  module.doc() = "The core of kvstore_ext: slices, queues, links, workers and servers.";
  module.def("load", [](const std::string& path) { LibMXNet::Load(path); });
  py::class_<Transport, std::shared_ptr<Transport>>(module, "Transport");
  py::enum_<Role>(module, "Role")
      .value("SERVER", Role::kServer)
      .value("WORKER", Role::kWorker)
      .value("SCHEDULER", Role::kScheduler);
  py::class_<PsLiteTransport, Transport, std::shared_ptr<PsLiteTransport>>(module,
                                                                           "PsLiteTransport")
      .def(py::init<Role, int, bool>(), py::kw_only(), py::arg("role"), py::arg("peers"),
           py::arg("copies"));
  module.def("use_one_heap", &UseOneHeap);
  py::class_<SchedulerLink>(module, "SchedulerLink")
      .def("silence", &SchedulerLink::silence)
      .def(
          "abort",
          [](SchedulerLink& self, const std::string& reason) {
            self.Send(ControlMessage(MessageType::kAbort, reason));
          },
          WithoutGil())
      .def("close", &SchedulerLink::Close);
  py::class_<LocalTransport, Transport, std::shared_ptr<LocalTransport>>(module, "LocalTransport")
      .def_static("make_pair", &LocalTransport::MakePair);
  BindSlicer(&module);
  BindArrays(&module);
  BindCodecs(&module);
  BindKeyCodecs(&module);
  BindTrace(&module);
  BindWorker(&module);
  BindServer(&module);
  BindScheduler(&module);
  BindSystemExit(&module);
  BindForks(&module);
  BindSecurity(&module);
  BindSlim(&module);
}
