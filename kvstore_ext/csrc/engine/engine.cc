#include "engine/engine.h"

#include <mutex>
#include <stdexcept>

#include "engine/dlpack.h"
#include "support/clock.h"

namespace kvstore_ext {
namespace {

// MXNet's Context, for the CPU.
struct Context {
  int device_type;
  int device_id;
};
constexpr Context kCpu = {kCpuDevice, 0};
// Has an operation that need not wait run on the thread that asks for it.
constexpr int kAsync = 4;

// As dmlc::Error, which is a runtime_error and no more; libmxnet copies it.
struct DmlcError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An array that stays alive until the operation on it has ended.
class Array {
 public:
  explicit Array(NDArrayHandle handle) {
    if (handle != nullptr) LibMXNet::Check(LibMXNet::Get().shallow_copy(handle, &handle_));
  }
  ~Array() {
    if (handle_ != nullptr) LibMXNet::Get().array_free(handle_);
  }
  // Keeps it alive for ever.
  void Abandon() { handle_ = nullptr; }

  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // What the engine orders operations by: arrays that share memory share it. NDArray's first member
  // points to it.
  static void* Chunk(NDArrayHandle handle) { return *static_cast<void**>(handle); }

  // Its elements, in their usual order; to be called while the engine lets nobody else write.
  // DLPack refuses an array that oneDNN keeps in a layout of its own, which happens to weights
  // after an inference pass, and does not wait. MXNet's usual call for the pointer would wait for
  // the operation that asks: for ever.
  char* Data() const {
    if (handle_ == nullptr) return nullptr;
    const LibMXNet& mx = LibMXNet::Get();
    void* tensor = nullptr;
    int status = mx.to_dlpack(handle_, &tensor);
    if (status != 0 && mx.chunk_reorder != nullptr) {
      mx.chunk_reorder(Chunk(handle_));
      status = mx.to_dlpack(handle_, &tensor);
    }
    LibMXNet::Check(status);
    return static_cast<char*>(TakeAddress(tensor));
  }

 private:
  NDArrayHandle handle_ = nullptr;
};

struct Call {
  std::shared_ptr<Worker> worker;
  Operation operation;
  std::shared_ptr<Array> input;
  Array output;
  bool begun = false;  // the worker has been asked
};

void End(const OnComplete& complete, const std::string& error) {
  if (error.empty()) {
    complete.callback(complete.engine, complete.param, nullptr);
  } else {
    static std::mutex one_at_a_time;  // MakeRoomForFailures says why
    std::lock_guard<std::mutex> lock(one_at_a_time);
    const DmlcError raised(error);
    complete.callback(complete.engine, complete.param, &raised);
  }
}

void Begin(void*, void* on_complete, void* param) {
  // The engine's object lies on its caller's stack; ours outlives the call.
  const OnComplete complete = *static_cast<OnComplete*>(on_complete);
  Call* call = static_cast<Call*>(param);
  // Before it has a part in anything, and its arrays could not be given back.
  const std::string failed = call->worker->failure();
  if (!failed.empty()) {
    call->begun = true;
    return End(complete, failed);
  }
  try {
    Operation operation = std::move(call->operation);
    operation.input = call->input->Data();
    operation.owner = call->input;
    operation.output = call->output.Data();
    operation.done = [complete, call](const std::string& error) {
      // Somebody may still read what a failed operation has sent: it goes out without a copy.
      if (!error.empty()) {
        call->input->Abandon();
        call->output.Abandon();  // a result may be on its way into it
      }
      End(complete, error);
    };
    call->begun = true;
    // Whoever ends the operation has the engine delete the call, perhaps before Start returns.
    const std::shared_ptr<Worker> worker = call->worker;
    worker->Start(std::move(operation));
  } catch (const std::exception& error) {  // before the worker had the operation
    End(complete, error.what());
  }
}

// The engine skips an operation on an array whose computation failed.
void Delete(void* param) {
  const std::unique_ptr<Call> call(static_cast<Call*>(param));
  if (!call->begun && call->operation.opens_round()) call->worker->Miss(call->operation.key);
}

}  // namespace

void PushToEngine(std::shared_ptr<Worker> worker, Operation operation, NDArrayHandle input,
                  NDArrayHandle output, NDArrayHandle turn) {
  const int priority = operation.priority;
  operation.pushed = Now();
  auto call = std::unique_ptr<Call>(new Call{std::move(worker), std::move(operation),
                                             std::make_shared<Array>(input), Array(output)});
  // The input too is declared as written: it may have to be brought into the usual layout.
  NDArrayHandle writes[3] = {turn, input, output};
  int count = 1;
  if (input != nullptr) writes[count++] = input;
  // The engine would wait for ever for an operation that writes to the same memory twice.
  const bool in_place =
      input != nullptr && output != nullptr && Array::Chunk(input) == Array::Chunk(output);
  if (output != nullptr && !in_place) writes[count++] = output;
  LibMXNet::Check(LibMXNet::Get().engine_push(Begin, call.get(), Delete, &kCpu, nullptr, 0, writes,
                                              count, &kCpuPrioritized, priority, "kvstore_ext",
                                              false));
  call.release();
}

void RunAfter(std::vector<NDArrayHandle> written, std::function<void(bool computed)> action) {
  struct Action {
    std::function<void(bool)> run;
    bool done;
  };
  auto call = std::unique_ptr<Action>(new Action{std::move(action), false});
  LibMXNet::Check(LibMXNet::Get().engine_push(
      [](void*, void* on_complete, void* param) {
        const OnComplete complete = *static_cast<OnComplete*>(on_complete);
        auto* action = static_cast<Action*>(param);
        action->done = true;
        action->run(true);
        End(complete, "");
      },
      call.get(),
      [](void* param) {
        // Skipped, as in Delete.
        std::unique_ptr<Action> action(static_cast<Action*>(param));
        if (!action->done) action->run(false);
      },
      &kCpu, written.data(), static_cast<int>(written.size()), nullptr, 0, &kCpuPrioritized, 0,
      "kvstore_ext updated", false));
  call.release();
}

void MakeRoomForFailures(NDArrayHandle array) {
  const auto fail = [](void*, void* on_complete, void*) {
    End(*static_cast<OnComplete*>(on_complete), "makes room");
  };
  // One more than a power of two has doubled the vector, which may be empty, once more.
  for (int i = 0; i <= kFailures; ++i) {
    LibMXNet::Check(LibMXNet::Get().engine_push(fail, nullptr, nullptr, &kCpu, nullptr, 0, &array,
                                                1, &kAsync, 0, "kvstore_ext makes room", false));
    LibMXNet::Get().wait_to_read(array);  // raises the failure, which is over with that
  }
}

}  // namespace kvstore_ext
