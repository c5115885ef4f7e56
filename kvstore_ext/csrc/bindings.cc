// The module kvstore_ext._core: what Python sees of the core. Its typed face is _core.pyi.
//
// Calls that wait, or that take a lock which a waiting call may hold, release the GIL. C++
// exceptions become Python's: invalid_argument a ValueError, out_of_range an IndexError,
// runtime_error a RuntimeError. No thread of the core calls into Python.
#include "bindings.h"

#include "dlpack.h"
#include "engine.h"
#include "listener.h"
#include "local_transport.h"
#include "pslite.h"
#include "server.h"
#include "slicer.h"
#include "worker.h"

namespace kvstore_ext {
namespace {

NDArrayHandle ToHandle(uintptr_t address) { return reinterpret_cast<NDArrayHandle>(address); }

py::capsule ToCapsule(const Buffer& buffer, DType dtype) {
  return py::capsule(ToDLPack(buffer, dtype), "dltensor", [](PyObject* capsule) {
    // MXNet renames a capsule whose tensor it has taken over.
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    tensor->deleter(tensor);
  });
}

py::list ToList(const std::vector<Slice>& slices) {
  py::list list;
  for (const Slice& slice : slices) {
    list.append(py::make_tuple(slice.index, slice.offset, slice.length, slice.server));
  }
  return list;
}

py::dict ToDict(const std::array<uint64_t, kMessageTypes>& bytes) {
  py::dict names;
  for (size_t type = 0; type < kMessageTypes; ++type) {
    if (bytes[type] > 0) names[kMessageNames[type]] = bytes[type];
  }
  return names;
}

void BindStatistics(py::module_* module) {
  py::class_<Totals>(*module, "Totals")
      .def_readonly("encode", &Totals::encode)
      .def_readonly("queue", &Totals::queue)
      .def_readonly("wire", &Totals::wire)
      .def_readonly("decode", &Totals::decode)
      .def_readonly("plain_bytes", &Totals::plain_bytes)
      .def_readonly("encoded_bytes", &Totals::encoded_bytes)
      .def_readonly("non_finite", &Totals::non_finite);
}

WorkerClass BindWorker(py::module_* module) {
  BindStatistics(module);
  return WorkerClass(*module, "Worker")
      .def(py::init([](std::shared_ptr<Transport> transport, int rank, int workers, int servers,
                       size_t slice_bytes, size_t window_bytes, double timeout, bool deterministic,
                       const std::string& configuration) {
             WorkerOptions options;
             options.rank = rank;
             options.workers = workers;
             options.servers = servers;
             options.slice_bytes = slice_bytes;
             options.window_bytes = window_bytes;
             options.timeout = timeout;
             options.deterministic = deterministic;
             options.configuration = configuration;
             return std::make_shared<Worker>(options, std::move(transport));
           }),
           py::arg("transport"), py::kw_only(), py::arg("rank"), py::arg("workers"),
           py::arg("servers"), py::arg("slice_bytes"), py::arg("window_bytes"), py::arg("timeout"),
           py::arg("deterministic"), py::arg("configuration"))
      .def("await_servers", &Worker::AwaitServers, WithoutGil())
      .def("join", &Worker::Join, WithoutGil())
      .def(
          "declare",
          [](Worker& worker, uint64_t key, int store, const std::string& name, int dtype,
             uint64_t elements, const std::string& compression, bool raises,
             const std::string& description) {
            SliceDeclaration declaration;
            declaration.elements = elements;
            declaration.dtype = static_cast<DType>(dtype);
            declaration.store = store;
            declaration.name = name;
            declaration.compression = compression;
            declaration.description = description;
            worker.Declare(key, declaration, raises);
          },
          WithoutGil())
      .def("slices",
           [](Worker& worker, uint64_t key) {
             py::gil_scoped_release without_gil;
             const std::vector<Slice> slices = worker.Slices(key);
             py::gil_scoped_acquire with_gil;
             return ToList(slices);
           })
      .def("ask",
           [](Worker& worker, int server, const std::string& text, const py::bytes& payload) {
             const Buffer buffer = ToBuffer(payload);
             py::gil_scoped_release without_gil;
             return worker.Ask(server, text, buffer);
           })
      .def("await_answer",
           [](Worker& worker, uint64_t question) {
             Answer answer;
             {
               py::gil_scoped_release without_gil;
               answer = worker.AwaitAnswer(question);
             }
             return py::make_tuple(answer.text, ToBytes(answer.payload));
           })
      .def(
          "push_to_engine",
          [](std::shared_ptr<Worker> worker, uint64_t key, bool contributes, uintptr_t input,
             uintptr_t output, uintptr_t order, int priority, uint32_t step,
             const std::string& settings, bool plain, int root) {
            Operation operation;
            operation.root = root;
            operation.plain = plain;
            operation.key = key;
            operation.contributes = contributes;
            operation.priority = priority;
            operation.step = step;
            operation.settings = settings;
            PushToEngine(std::move(worker), std::move(operation), ToHandle(input), ToHandle(output),
                         ToHandle(order));
          },
          WithoutGil())
      .def("codec_state",
           [](Worker& worker, uint64_t key) {
             const auto& codec = worker.CodecOf<GradientCodec>(key);
             return py::make_tuple(codec.RoundsAfter(worker.RoundsOf(key) - 1),
                                   ToArray(codec.state()));
           })
      .def("set_codec_state",
           [](Worker& worker, uint64_t key, uint64_t drawn, const Floats& state) {
             worker.CodecOf<GradientCodec>(key).SetState(worker.RoundsOf(key) - 1, drawn,
                                                         ToVector(state));
           })
      .def("set_momentum",
           [](Worker& worker, uint64_t key, float momentum) {
             worker.CodecOf<GradientCodec>(key).SetMomentum(momentum);
           })
      .def("scaler",
           [](Worker& worker, uint64_t key) { return worker.CodecOf<KeyCodec>(key).scaler(); })
      .def("zeros",
           [](Worker& worker, uint64_t key) { return worker.CodecOf<KeyCodec>(key).zeros(); })
      .def("totals", &Worker::totals, WithoutGil())
      .def("traffic",
           [](Worker& worker) {
             const Traffic traffic = worker.traffic();
             return py::make_tuple(ToDict(traffic.sent), ToDict(traffic.received));
           })
      .def("leave", &Worker::Leave, WithoutGil())
      .def("abort", &Worker::Abort, WithoutGil())
      .def("hush", &Worker::Hush, WithoutGil())
      .def("stop", &Worker::Stop, WithoutGil())
      .def("failure", &Worker::failure, WithoutGil())
      .def("order", &Worker::order, WithoutGil())
      .def("enable_trace", [](Worker& worker, bool on) { worker.trace().Enable(on); })
      .def("take_trace", [](Worker& worker) {
        py::list events;
        for (const Event& event : worker.trace().Take()) {
          events.append(py::make_tuple(event.time, event.what, event.key, event.slice, event.round,
                                       event.priority));
        }
        return events;
      });
}

ServerClass BindServer(py::module_* module) {
  py::class_<Update>(*module, "Update")
      .def_readonly("key", &Update::key)
      .def_readonly("slice", &Update::slice)
      .def_readonly("store", &Update::store)
      .def_readonly("name", &Update::name)
      .def_readonly("round", &Update::round)
      .def_readonly("step", &Update::step)
      .def_readonly("settings", &Update::settings)
      .def_readonly("failed", &Update::failed)
      .def("gradient",
           [](const Update& update) { return ToCapsule(update.gradient, SumTypeOf(update.dtype)); })
      .def("value", [](const Update& update) { return ToCapsule(update.value, update.dtype); });

  py::class_<Question>(*module, "Question")
      .def_readonly("text", &Question::text)
      .def("payload", [](const Question& question) { return ToBytes(question.payload); });

  return ServerClass(*module, "Server")
      .def(py::init([](std::shared_ptr<Transport> transport, int workers, double timeout) {
             ServerOptions options;
             options.workers = workers;
             options.timeout = timeout;
             return std::make_shared<Server>(options, std::move(transport));
           }),
           py::arg("transport"), py::kw_only(), py::arg("workers"), py::arg("timeout"))
      .def("set_rank", &Server::SetRank)
      .def("greet", &Server::Greet, WithoutGil())
      .def("use_optimizer", &Server::UseOptimizer, WithoutGil())
      .def(
          "next_update",
          [](Server& server) -> std::unique_ptr<Update> {
            auto update = std::make_unique<Update>();
            return server.NextUpdate(update.get()) ? std::move(update) : nullptr;
          },
          WithoutGil())
      .def(
          "publish_after",
          [](std::shared_ptr<Server> server, const Update& update, uintptr_t value) {
            RunAfter(ToHandle(value), [server, update](bool computed) {
              computed ? server->Updated(update) : server->UpdateFailed(update);
            });
          },
          WithoutGil())
      .def(
          "next_question",
          [](Server& server) -> std::unique_ptr<Question> {
            auto question = std::make_unique<Question>();
            return server.NextQuestion(question.get()) ? std::move(question) : nullptr;
          },
          WithoutGil())
      .def("reply",
           [](Server& server, const Question& question, const std::string& text,
              const py::bytes& payload) {
             const Buffer buffer = ToBuffer(payload);
             py::gil_scoped_release without_gil;
             server.Reply(question, text, buffer);
           })
      .def("carried", [](const Server& server, uint64_t key,
                         uint32_t slice) { return ToArray(server.Carried(key, slice)); })
      .def("set_carried",
           [](Server& server, uint64_t key, uint32_t slice, uint64_t drawn, const Floats& carried) {
             server.SetCarried(key, slice, drawn, ToVector(carried));
           })
      .def("abort", &Server::Abort, WithoutGil())
      .def("await_failure", &Server::AwaitFailure, WithoutGil())
      .def("end_waits", &Server::EndWaits, WithoutGil())
      .def("held_bytes", &Server::held_bytes, WithoutGil())
      .def("stop", &Server::Stop, WithoutGil());
}

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
  py::class_<Listener>(module, "Listener")
      .def(py::init<std::shared_ptr<Transport>>())
      .def("await_failure", &Listener::AwaitFailure, WithoutGil())
      .def("end_waits", &Listener::EndWaits, WithoutGil())
      .def("stop", &Listener::Stop, WithoutGil());
  py::class_<LocalTransport, Transport, std::shared_ptr<LocalTransport>>(module, "LocalTransport")
      .def_static("make_pair", &LocalTransport::MakePair);
  WorkerClass worker = BindWorker(&module);
  ServerClass server = BindServer(&module);
  BindSlim(&module, &worker, &server);
  BindSlicer(&module);
  BindCodecs(&module);
}
