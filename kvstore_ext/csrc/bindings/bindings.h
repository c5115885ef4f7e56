// What the binding files share; they are the only ones that include pybind11.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "keys/slicer.h"
#include "support/buffer.h"
#include "transport/libmxnet.h"

namespace kvstore_ext {

namespace py = pybind11;

using WithoutGil = py::call_guard<py::gil_scoped_release>;

// Any numbers, converted where they are not float32.
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

inline py::bytes ToBytes(const Buffer& buffer) { return {buffer.data.get(), buffer.size}; }

template <typename Number>
py::array_t<Number> ToArray(const std::vector<Number>& values) {
  return py::array_t<Number>(static_cast<py::ssize_t>(values.size()), values.data());
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

// (index, offset, length, server) of each.
inline py::list ToList(const std::vector<Slice>& slices) {
  py::list list;
  for (const Slice& slice : slices) {
    list.append(py::make_tuple(slice.index, slice.offset, slice.length, slice.server));
  }
  return list;
}

inline NDArrayHandle ToHandle(uintptr_t address) {
  return reinterpret_cast<NDArrayHandle>(address);
}

inline std::vector<NDArrayHandle> ToHandles(const std::vector<uintptr_t>& addresses) {
  std::vector<NDArrayHandle> handles;
  for (const uintptr_t address : addresses) handles.push_back(ToHandle(address));
  return handles;
}

// Codecs with their options, what encodes with them, and the codecs of keys.
void BindCodecs(py::module_* module);
void BindKeyCodecs(py::module_* module);

// The worker, and the server with its optimizer's updates and its questions.
void BindWorker(py::module_* module);
void BindServer(py::module_* module);
void BindScheduler(py::module_* module);
void BindSystemExit(py::module_* module);
void BindForks(py::module_* module);
void BindSecurity(py::module_* module);
void BindTrace(py::module_* module);
void BindArrays(py::module_* module);

// What Slim-DP has beside them, and its parts.
void BindSlim(py::module_* module);

}  // namespace kvstore_ext
