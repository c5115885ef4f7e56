// What MXNet knows of an array, in one call of Python's instead of several.
#include <algorithm>

#include "bindings/bindings.h"

namespace kvstore_ext {
namespace {

bool IsDenseLike(uintptr_t address, const std::vector<int64_t>& shape, int dtype) {
  const LibMXNet& mx = LibMXNet::Get();
  const NDArrayHandle array = ToHandle(address);
  int found = 0;
  LibMXNet::Check(mx.array_storage(array, &found));
  if (found != 0) return false;
  LibMXNet::Check(mx.array_dtype(array, &found));
  if (found != dtype) return false;
  const int64_t* sizes = nullptr;
  LibMXNet::Check(mx.array_shape(array, &found, &sizes));
  return found == static_cast<int>(shape.size()) && std::equal(shape.begin(), shape.end(), sizes);
}

bool IsOnCpu(uintptr_t address) {
  int device = 0, number = 0;
  LibMXNet::Check(LibMXNet::Get().array_context(ToHandle(address), &device, &number));
  return device == kCpuDevice;
}

}  // namespace

void BindArrays(py::module_* module) {
  module->def("is_dense_like", &IsDenseLike, py::arg("array"), py::arg("shape"), py::arg("dtype"));
  module->def("is_on_cpu", &IsOnCpu, py::arg("array"));
}

}  // namespace kvstore_ext
