// The module kvstore_ext._core: what Python sees of the core. Its typed face is _core.pyi.
//
// Calls that wait, or that take a lock which a waiting call may hold, release the GIL. C++
// exceptions become Python's: invalid_argument a ValueError, out_of_range an IndexError,
// runtime_error a RuntimeError. No thread of the core calls into Python.
#include "bindings.h"

#include <pybind11/functional.h>

#include "aggregator.h"
#include "listener.h"
#include "local_transport.h"
#include "order.h"
#include "pslite.h"
#include "send_queue.h"
#include "slicer.h"
#include "window.h"

namespace kvstore_ext {
namespace {

// The pieces that tests examine without a network.
void BindParts(py::module_* module) {
  module->def(
      "slice_key",
      [](uint64_t key, uint64_t elements, double element_bytes, size_t slice_bytes, int servers,
         uint64_t alignment) {
        return ToList(SliceKey(key, elements, element_bytes, slice_bytes, servers, alignment));
      },
      py::arg("key"), py::arg("elements"), py::arg("element_bytes"), py::arg("slice_bytes"),
      py::arg("servers"), py::arg("alignment") = 1);

  py::class_<SendQueue<int>>(*module, "SendQueue")
      .def(py::init<size_t>(), py::arg("window_bytes"))
      .def("push", &SendQueue<int>::Push, WithoutGil())
      .def("try_pop",
           [](SendQueue<int>& queue) -> py::object {
             int item = 0;
             return queue.TryPop(&item) ? py::cast(item) : py::none();
           })
      .def("pop",
           [](SendQueue<int>& queue, double seconds) -> py::object {
             int item = 0;
             bool taken = false;
             {
               py::gil_scoped_release without_gil;
               taken = queue.Pop(&item, std::chrono::duration<double>(seconds));
             }
             return taken ? py::cast(item) : py::none();
           })
      .def("release", &SendQueue<int>::Release, WithoutGil())
      .def("set_window", &SendQueue<int>::SetWindow, py::arg("window_bytes"),
           py::arg("idle_bytes") = 0, WithoutGil())
      .def("close", &SendQueue<int>::Close, WithoutGil())
      .def("in_flight", &SendQueue<int>::in_flight)
      .def("__len__", &SendQueue<int>::size);

  py::class_<Window>(*module, "Window")
      .def_readonly("part_bytes", &Window::part_bytes)
      .def_readonly("bytes", &Window::bytes);
  py::class_<WindowEstimator>(*module, "WindowEstimator")
      .def(py::init<size_t, int, std::function<void(const Window&)>>(), py::arg("slice_bytes"),
           py::arg("links"), py::arg("changed"))
      .def("round_trip", &WindowEstimator::RoundTrip, py::arg("peer"), py::arg("seconds"))
      .def("acknowledged", &WindowEstimator::Acknowledged, py::arg("peer"), py::arg("bytes"),
           py::arg("now"))
      .def("advice", &WindowEstimator::advice);

  py::class_<OrderLearner>(*module, "OrderLearner")
      .def(py::init<std::function<void(const std::vector<uint64_t>&)>>())
      .def("ready", &OrderLearner::Ready);

  py::class_<Aggregator>(*module, "Aggregator")
      .def(py::init([](int dtype, size_t elements, int workers, bool deterministic) {
        return Aggregator(static_cast<DType>(dtype), elements, workers, deterministic);
      }))
      .def("add", [](Aggregator& aggregator, int rank,
                     const py::bytes& values) { aggregator.Add(rank, ToBuffer(values), true); })
      .def("complete", &Aggregator::complete)
      .def("heard", &Aggregator::heard)
      .def("missing", &Aggregator::missing)
      .def("take", [](Aggregator& aggregator) { return ToBytes(aggregator.Take()); })
      .def("take_wide", [](Aggregator& aggregator) { return ToBytes(aggregator.TakeWide()); });
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
  py::class_<Listener>(module, "Listener")
      .def(py::init<std::shared_ptr<Transport>>())
      .def("await_failure", &Listener::AwaitFailure, WithoutGil())
      .def("end_waits", &Listener::EndWaits, WithoutGil())
      .def("stop", &Listener::Stop, WithoutGil());
  py::class_<LocalTransport, Transport, std::shared_ptr<LocalTransport>>(module, "LocalTransport")
      .def_static("make_pair", &LocalTransport::MakePair);
  BindParts(&module);
  BindCodecs(&module);
  BindKeyCodecs(&module);
  BindWorker(&module);
  BindServer(&module);
  BindSlim(&module);
}
