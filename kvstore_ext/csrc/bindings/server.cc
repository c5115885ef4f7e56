// What Python sees of a server of the lane.
#include "server/server.h"

#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "bindings/bindings.h"
#include "engine/dlpack.h"
#include "engine/engine.h"
#include "server/kernel_updates.h"
#include "server/scheduler.h"

namespace kvstore_ext {
namespace {

// A new array's handle, which Python's NDArray takes over.
uintptr_t ToArrayHandle(const Buffer& buffer, DType dtype) {
  DLManagedTensor* tensor = ToDLPack(buffer, dtype);
  NDArrayHandle handle = nullptr;
  if (LibMXNet::Get().from_dlpack(tensor, false, &handle) != 0) {
    tensor->deleter(tensor);
    throw std::runtime_error(LibMXNet::Get().last_error());
  }
  return reinterpret_cast<uintptr_t>(handle);
}

using ServerClass = py::class_<Server, std::shared_ptr<Server>>;

void BindUpdates(py::module_* module, ServerClass* server) {
  py::class_<Update>(*module, "Update")
      .def_readonly("key", &Update::key)
      .def_readonly("slice", &Update::slice)
      .def_readonly("store", &Update::store)
      .def_readonly("literal", &Update::literal)
      .def_readonly("name", &Update::name)
      .def_property_readonly("dtype",
                             [](const Update& update) { return static_cast<int>(update.dtype); })
      .def_readonly("step", &Update::step)
      .def_readonly("settings", &Update::settings)
      .def_readonly("failed", &Update::failed)
      .def("gradient",
           [](const Update& update) {
             return ToArrayHandle(update.gradient, SumTypeOf(update.dtype));
           })
      .def("value", [](const Update& update) { return ToArrayHandle(update.value, update.dtype); });

  server->def("use_optimizer", &Server::UseOptimizer, WithoutGil())
      .def(
          "next_updates",
          [](Server& self, size_t most, size_t few_elements) {
            std::vector<Update> updates;
            {
              py::gil_scoped_release without_gil;
              updates = self.NextUpdates(most, few_elements);
            }
            return updates;
          },
          py::kw_only(), py::arg("most"), py::arg("few_elements"))
      .def(
          "publish_after",
          [](std::shared_ptr<Server> self, Update update, uintptr_t value) {
            py::gil_scoped_release without_gil;
            RunAfter({ToHandle(value)}, [self, update = std::move(update)](bool computed) {
              computed ? self->Updated(update) : self->UpdateFailed(update);
            });
          },
          py::arg("update"), py::arg("value"));
}

// The memory of a state, once MXNet has computed it; null for 0, which stands for no state.
float* ToFloats(uintptr_t address, size_t elements) {
  if (address == 0 || elements == 0) return nullptr;
  const LibMXNet& mx = LibMXNet::Get();
  const NDArrayHandle array = ToHandle(address);
  LibMXNet::Check(mx.wait_to_read(array));
  int dtype = 0, dimensions = 0;
  const int64_t* shape = nullptr;
  LibMXNet::Check(mx.array_dtype(array, &dtype));
  LibMXNet::Check(mx.array_shape(array, &dimensions, &shape));
  const auto found =
      std::accumulate(shape, shape + dimensions, int64_t{1}, std::multiplies<int64_t>());
  if (dtype != static_cast<int>(DType::kFloat32) || found != static_cast<int64_t>(elements)) {
    throw std::invalid_argument("its state has " + std::to_string(found) +
                                " elements of MXNet's type " + std::to_string(dtype) +
                                "; the slice has " + std::to_string(elements) + " of float32");
  }
  void* tensor = nullptr;
  LibMXNet::Check(mx.to_dlpack(array, &tensor));
  return static_cast<float*>(TakeAddress(tensor));
}

void BindKernelUpdates(ServerClass* server) {
  server
      ->def(
          "update_by_sgd",
          [](Server& self, const Update& update, float lr, float wd, float rescale, float clip,
             float momentum, uintptr_t velocity, uintptr_t master) {
            py::gil_scoped_release without_gil;
            SgdUpdate how;
            how.step = {lr, wd, rescale, clip, momentum};
            how.velocity = ToFloats(velocity, update.elements);
            how.master = ToFloats(master, update.elements);
            if (update.elements > 0) Compute(how, update);
            self.Updated(update);
          },
          py::arg("update"), py::kw_only(), py::arg("lr"), py::arg("wd"), py::arg("rescale"),
          py::arg("clip"), py::arg("momentum"), py::arg("velocity"), py::arg("master"))
      .def(
          "update_by_adam",
          [](Server& self, const Update& update, float lr, float wd, float rescale, float clip,
             float beta1, float beta2, float epsilon, uintptr_t mean, uintptr_t variance,
             uintptr_t master) {
            py::gil_scoped_release without_gil;
            AdamUpdate how;
            how.step = {lr, wd, rescale, clip, beta1, beta2, epsilon};
            how.mean = ToFloats(mean, update.elements);
            how.variance = ToFloats(variance, update.elements);
            how.master = ToFloats(master, update.elements);
            if (update.elements > 0) Compute(how, update);
            self.Updated(update);
          },
          py::arg("update"), py::kw_only(), py::arg("lr"), py::arg("wd"), py::arg("rescale"),
          py::arg("clip"), py::arg("beta1"), py::arg("beta2"), py::arg("epsilon"), py::arg("mean"),
          py::arg("variance"), py::arg("master"));
}

void BindQuestions(py::module_* module, ServerClass* server) {
  py::class_<Question>(*module, "Question")
      .def_readonly("text", &Question::text)
      .def("payload", [](const Question& question) { return ToBytes(question.payload); });
  server
      ->def(
          "next_question",
          [](Server& self) -> std::unique_ptr<Question> {
            auto question = std::make_unique<Question>();
            return self.NextQuestion(question.get()) ? std::move(question) : nullptr;
          },
          WithoutGil())
      .def("reply", [](Server& self, const Question& question, const std::string& text,
                       const py::bytes& payload) {
        const Buffer buffer = ToBuffer(payload);
        py::gil_scoped_release without_gil;
        self.Reply(question, text, buffer);
      });
}

// What is saved of slices, and put back.
void BindStates(ServerClass* server) {
  server
      ->def(
          "carried_over",
          [](const Server& self, uint64_t key, uint32_t slice) {
            return ToArray(self.CarriedOver({key, slice}));
          },
          py::arg("key"), py::arg("slice"))
      .def(
          "carry_over",
          [](Server& self, uint64_t key, uint32_t slice, uint64_t rounds, const Floats& values) {
            self.CarryOver({key, slice}, rounds, ToVector(values));
          },
          py::arg("key"), py::arg("slice"), py::arg("rounds"), py::arg("values"))
      .def(
          "set_value",
          [](Server& self, uint64_t key, uint32_t slice, const py::bytes& value) {
            const Buffer buffer = ToBuffer(value);
            py::gil_scoped_release without_gil;
            self.SetValue({key, slice}, buffer);
          },
          py::arg("key"), py::arg("slice"), py::arg("value"));
}

// What a server tells of itself.
void BindStatus(ServerClass* server) {
  server->def("held_bytes", &Server::held_bytes, WithoutGil())
      .def("progress",
           [](const Server& self) {
             std::vector<WorkerProgress> progress;
             {
               py::gil_scoped_release without_gil;
               progress = self.progress();
             }
             py::list workers;
             for (const WorkerProgress& each : progress) {
               workers.append(py::make_tuple(each.pushes, each.late, each.missing));
             }
             return workers;
           })
      .def("traffic", [](const Server& self) {
        const Traffic traffic = self.traffic();
        const auto sum = [](const auto& bytes) {
          return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
        };
        return py::make_tuple(sum(traffic.sent), sum(traffic.received));
      });
}

}  // namespace

void BindServer(py::module_* module) {
  py::class_<ServerMethod, std::shared_ptr<ServerMethod>>(*module, "ServerMethod");
  ServerClass server(*module, "Server");
  server
      .def(py::init([](std::shared_ptr<Transport> transport, int workers, double timeout,
                       double silence, double patience, uint32_t job, const std::string& job_name,
                       bool shared_memory,
                       std::map<std::string, std::shared_ptr<ServerMethod>> methods) {
             ServerOptions options;
             options.workers = workers;
             options.limits = {timeout, silence, patience};
             options.job = job;
             options.job_name = job_name;
             options.shared_memory = shared_memory;
             options.methods = std::move(methods);
             return std::make_shared<Server>(options, std::move(transport));
           }),
           py::arg("transport"), py::kw_only(), py::arg("workers"), py::arg("timeout"),
           py::arg("silence"), py::arg("patience"), py::arg("job"), py::arg("job_name"),
           py::arg("shared_memory"), py::arg("methods"))
      .def("set_rank", &Server::SetRank)
      .def("greet", &Server::Greet, py::arg("worker"), py::arg("host"), py::arg("job_name"),
           WithoutGil())
      .def("abort", &Server::Abort, WithoutGil())
      .def("await_failure", &Server::AwaitFailure, WithoutGil())
      .def("end_waits", &Server::EndWaits, WithoutGil())
      .def("over", &Server::Over, WithoutGil())
      .def("scheduler", &Server::scheduler, py::return_value_policy::reference_internal)
      .def("recorder", &Server::recorder, py::return_value_policy::reference_internal)
      .def("stop", &Server::Stop, WithoutGil());
  BindStates(&server);
  BindStatus(&server);
  BindUpdates(module, &server);
  BindKernelUpdates(&server);
  BindQuestions(module, &server);
}

void BindScheduler(py::module_* module) {
  py::class_<Scheduler>(*module, "Scheduler")
      .def(py::init<std::shared_ptr<Transport>, int, double, uint32_t>(), py::arg("transport"),
           py::kw_only(), py::arg("servers"), py::arg("silence"), py::arg("job"))
      .def("await_failure", &Scheduler::AwaitFailure, WithoutGil())
      .def("over", &Scheduler::Over, WithoutGil())
      .def("end_waits", &Scheduler::EndWaits, WithoutGil())
      .def("stop", &Scheduler::Stop, WithoutGil());
}

}  // namespace kvstore_ext
