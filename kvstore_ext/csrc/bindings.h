// What the binding files share; they are the only ones that include pybind11.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

#include "buffer.h"

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

// Draws, Codec and KeyEncoder.
void BindCodecs(py::module_* module);

}  // namespace kvstore_ext
