// What Python sees of a recorder.
#include "bindings/bindings.h"
#include "trace/recorder.h"

namespace kvstore_ext {

void BindTrace(py::module_* module) {
  py::class_<Recorder>(*module, "Recorder")
      .def("open", &Recorder::Open, py::arg("path"), py::arg("capacity"), py::arg("first"),
           py::arg("last"), WithoutGil())
      .def("close", &Recorder::Close, WithoutGil())
      .def("forget", &Recorder::Forget)
      .def("on", &Recorder::on)
      .def("layers", &Recorder::layers)
      .def("recorded", &Recorder::recorded)
      .def("dropped", &Recorder::dropped);
}

}  // namespace kvstore_ext
