// What Python sees of a worker of the lane.
#include "worker/worker.h"

#include <array>
#include <exception>

#include "bindings/bindings.h"
#include "engine/engine.h"
#include "engine/layer_mark.h"
#include "engine/layer_watch.h"

namespace kvstore_ext {
namespace {

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
      .def_readonly("first", &Totals::first)
      .def_readonly("plain_bytes", &Totals::plain_bytes)
      .def_readonly("encoded_bytes", &Totals::encoded_bytes)
      .def_readonly("non_finite", &Totals::non_finite);
}

std::shared_ptr<Worker> MakeWorker(std::shared_ptr<Transport> transport, int rank, int workers,
                                   int servers, size_t slice_bytes, size_t window_bytes,
                                   double timeout, double silence, double patience,
                                   bool deterministic, bool priorities, bool checksum,
                                   bool shared_memory, int encode_threads, uint32_t job,
                                   const std::string& configuration) {
  WorkerOptions options;
  options.rank = rank;
  options.workers = workers;
  options.servers = servers;
  options.slice_bytes = slice_bytes;
  options.window_bytes = window_bytes;
  options.limits = {timeout, silence, patience};
  options.deterministic = deterministic;
  options.priorities = priorities;
  options.checksum = checksum;
  options.shared_memory = shared_memory;
  options.encode_threads = encode_threads;
  options.job = job;
  options.configuration = configuration;
  return std::make_shared<Worker>(options, std::move(transport));
}

void Declare(Worker& worker, uint64_t key, int store, const std::string& literal,
             const std::string& name, int dtype, uint64_t elements, std::shared_ptr<KeyCodec> codec,
             const std::string& description) {
  SliceDeclaration declaration;
  declaration.elements = elements;
  declaration.dtype = static_cast<DType>(dtype);
  declaration.store = store;
  declaration.literal = literal;
  declaration.name = name;
  declaration.description = description;
  worker.Declare(key, declaration, std::move(codec));
}

void Push(std::shared_ptr<Worker> worker, uint64_t key, Operation::Kind kind, uintptr_t input,
          uintptr_t output, uintptr_t turn, int priority, uint32_t step,
          const std::string& settings, bool plain, int root) {
  Operation operation;
  operation.key = key;
  operation.kind = kind;
  operation.priority = worker->Priority(priority);
  operation.step = step;
  operation.settings = settings;
  operation.plain = plain;
  operation.root = root;
  PushToEngine(std::move(worker), std::move(operation), ToHandle(input), ToHandle(output),
               ToHandle(turn));
}

// For a trace: every key as (number, name, type, elements, method, slices).
py::list Declared(const Worker& worker) {
  py::list keys;
  for (const auto& [key, declared] : worker.Declared()) {
    keys.append(py::make_tuple(key, declared.name, NameOf(declared.dtype), declared.elements,
                               declared.method, ToList(worker.Slices(key))));
  }
  return keys;
}

// What concerns MXNet's own store beside the lane, and meetings of all workers.
void BindMeetings(py::class_<Worker, std::shared_ptr<Worker>>* worker) {
  worker->def("meet", &Worker::Meet, py::arg("what"), py::arg("waits"), WithoutGil())
      .def("await_meeting", &Worker::AwaitMeeting, WithoutGil())
      .def(
          "push_after",
          [](std::shared_ptr<Worker> self, uintptr_t array, uint64_t number,
             const std::string& what) {
            self->stock().AwaitGradient();
            try {
              RunAfter({ToHandle(array)}, [self, number, what](bool computed) {
                self->stock().GradientEnded();
                if (computed) self->MeetSparse(number, what);
              });
            } catch (const std::exception&) {  // nobody else will say that it has ended
              self->stock().GradientEnded();
              throw;
            }
          },
          py::arg("array"), py::arg("number"), py::arg("what"), WithoutGil())
      .def("meet_sparse", &Worker::MeetSparse, WithoutGil())
      .def(
          "count_pull_until",
          [](std::shared_ptr<Worker> self, uintptr_t array, const std::string& what,
             const std::vector<int64_t>& bytes) {
            const int number = self->BeginPull(what, bytes);
            try {
              RunAfter({ToHandle(array)},
                       [self, number, bytes](bool) { self->EndPull(number, bytes); });
            } catch (const std::exception&) {  // as above
              self->EndPull(number, bytes);
              throw;
            }
          },
          py::arg("array"), py::arg("what"), py::arg("bytes"), WithoutGil())
      .def("stock_leaves", &Worker::StockLeaves, py::arg("bytes"), WithoutGil())
      .def("begin_stock",
           [](Worker& self, const std::string& what) { return self.stock().Begin(what); })
      .def("end_stock", [](Worker& self, int number) { self.stock().End(number); })
      .def("stock_operations", [](Worker& self) { return self.stock().open(); })
      .def("scheduler", &Worker::scheduler, py::return_value_policy::reference_internal);
}

// Questions to servers' Python, and what a worker tells of itself.
void BindTalk(py::class_<Worker, std::shared_ptr<Worker>>* worker) {
  worker
      ->def("ask",
            [](Worker& self, int server, const std::string& text, const py::bytes& payload) {
              const Buffer buffer = ToBuffer(payload);
              py::gil_scoped_release without_gil;
              return self.Ask(server, text, buffer);
            })
      .def(
          "await_answer",
          [](Worker& self, uint64_t question, double seconds) -> py::object {
            std::optional<Answer> answer;
            {
              py::gil_scoped_release without_gil;
              answer = self.AwaitAnswer(question, seconds);
            }
            if (!answer) return py::none();
            return py::make_tuple(answer->server, py::bytes(answer->text),
                                  ToBytes(answer->payload));
          },
          py::arg("question"), py::arg("seconds") = Limits::kForEver)
      .def("is_answered", &Worker::IsAnswered, WithoutGil())
      .def("give_up", &Worker::GiveUp, WithoutGil())
      .def("totals", &Worker::totals, WithoutGil())
      .def("script_reads", &Worker::ScriptReads)
      .def("traffic",
           [](Worker& self) {
             const Traffic traffic = self.traffic();
             return py::make_tuple(ToDict(traffic.sent), ToDict(traffic.received));
           })
      .def("shared_bytes", &Worker::SharedBytes)
      .def("messages",
           [](Worker& self) {
             const Traffic traffic = self.traffic();
             return py::make_tuple(ToDict(traffic.messages_sent),
                                   ToDict(traffic.messages_received));
           })
      .def("refused", &Worker::refused, WithoutGil())
      .def("order", &Worker::order, WithoutGil())
      .def("declared", &Declared)
      .def("watch_network",
           [](std::shared_ptr<Worker> self, uintptr_t network) {
             WatchNetwork(std::move(self), ToHandle(network));
           })
      .def("watch_executor",
           [](std::shared_ptr<Worker> self, uintptr_t executor) {
             WatchExecutor(std::move(self), ToHandle(executor));
           })
      .def(
          "mark_layer",
          [](const std::shared_ptr<Worker>& self, const std::string& layer, bool backward,
             const std::vector<uintptr_t>& reads, const std::vector<uintptr_t>& writes) {
            const EventKind pass = backward ? EventKind::kBackward : EventKind::kForward;
            MarkLayer(self, layer, pass, ToHandles(reads), ToHandles(writes));
          },
          py::arg("layer"), py::kw_only(), py::arg("backward"),
          py::arg("reads") = std::vector<uintptr_t>{}, py::arg("writes") = std::vector<uintptr_t>{})
      .def("recorder", &Worker::recorder, py::return_value_policy::reference_internal);
}

}  // namespace

void BindWorker(py::module_* module) {
  BindStatistics(module);
  module->def(
      "make_room_for_failures", [](uintptr_t array) { MakeRoomForFailures(ToHandle(array)); },
      WithoutGil());
  py::enum_<Operation::Kind>(*module, "Kind")
      .value("PULL", Operation::Kind::kPull)
      .value("PUSH", Operation::Kind::kPush)
      .value("BROADCAST", Operation::Kind::kBroadcast);
  py::class_<Worker, std::shared_ptr<Worker>> worker(*module, "Worker");
  worker
      .def(py::init(&MakeWorker), py::arg("transport"), py::kw_only(), py::arg("rank"),
           py::arg("workers"), py::arg("servers"), py::arg("slice_bytes"), py::arg("window_bytes"),
           py::arg("timeout"), py::arg("silence"), py::arg("patience"), py::arg("deterministic"),
           py::arg("priorities"), py::arg("checksum"), py::arg("shared_memory"),
           py::arg("encode_threads"), py::arg("job"), py::arg("configuration"))
      .def("await_servers", &Worker::AwaitServers, WithoutGil())
      .def("join", &Worker::Join, WithoutGil())
      .def("declare", &Declare, WithoutGil())
      .def("slices",
           [](Worker& self, uint64_t key) {
             py::gil_scoped_release without_gil;
             const std::vector<Slice> slices = self.Slices(key);
             py::gil_scoped_acquire with_gil;
             return ToList(slices);
           })
      .def("rounds", &Worker::RoundsOf, WithoutGil())
      .def("was_skipped", &Worker::WasSkipped, WithoutGil())
      .def("push_to_engine", &Push, py::arg("key"), py::arg("kind"), py::arg("input"),
           py::arg("output"), py::arg("turn"), py::arg("priority"), py::arg("step") = 0,
           py::arg("settings") = "", py::arg("plain") = false, py::arg("root") = 0, WithoutGil())
      .def("begin_idle", &Worker::BeginIdle, WithoutGil())
      .def("await_demand", &Worker::AwaitDemand, WithoutGil())
      .def("end_idle", &Worker::EndIdle, WithoutGil())
      .def("leave", &Worker::Leave, py::arg("seconds"), WithoutGil())
      .def("abort", &Worker::Abort, WithoutGil())
      .def("hush", &Worker::Hush, WithoutGil())
      .def("stop", &Worker::Stop, WithoutGil())
      .def("failure", &Worker::failure, WithoutGil());
  BindTalk(&worker);
  BindMeetings(&worker);
}

}  // namespace kvstore_ext
