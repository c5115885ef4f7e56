// Before a process forks, MXNet waits for all operations. Python's lock is let go meanwhile: some
// of them end only when a thread of Python's has done its part (store/forks.py).
#include <pthread.h>

#include "bindings/bindings.h"
#include "transport/libmxnet.h"

namespace kvstore_ext {
namespace {

// MXNet has its own such handler, from when it was loaded. The last one that came is called first.
void WaitForOperations() {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return;
  py::gil_scoped_release released;
  LibMXNet::Get().wait_for_all();  // a failure stays with the arrays
}

void WaitBeforeForks() { pthread_atfork(WaitForOperations, nullptr, nullptr); }

}  // namespace

void BindForks(py::module_* module) { module->def("wait_before_forks", &WaitBeforeForks); }

}  // namespace kvstore_ext
