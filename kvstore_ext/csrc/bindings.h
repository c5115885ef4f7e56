// What the binding files share; they are the only ones that include pybind11.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "buffer.h"
#include "server.h"
#include "worker.h"

namespace kvstore_ext {

namespace py = pybind11;

using WithoutGil = py::call_guard<py::gil_scoped_release>;

// Any numbers, converted where they are not float32.
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

inline py::bytes ToBytes(const Buffer& buffer) { return {buffer.data.get(), buffer.size}; }

inline Floats ToArray(const std::vector<float>& values) {
  return Floats(static_cast<py::ssize_t>(values.size()), values.data());
}

inline std::vector<float> ToVector(const Floats& values) {
  return {values.data(), values.data() + values.size()};
}

inline Buffer ToBuffer(const py::bytes& bytes) {
  const auto view = static_cast<std::string_view>(bytes);
  Buffer buffer = Buffer::Allocate(view.size());
  if (!view.empty()) std::memcpy(buffer.data.get(), view.data(), view.size());
  return buffer;
}

using WorkerClass = py::class_<Worker, std::shared_ptr<Worker>>;
using ServerClass = py::class_<Server, std::shared_ptr<Server>>;

// Draws, Codec and KeyEncoder.
void BindCodecs(py::module_* module);

// What Slim-DP adds to workers and servers, and its parts.
void BindSlim(py::module_* module, WorkerClass* worker, ServerClass* server);

}  // namespace kvstore_ext
