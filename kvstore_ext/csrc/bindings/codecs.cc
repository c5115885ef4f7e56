// What Python sees of the codecs: their options, for the methods; the rest for tests, benchmarks
// and simulations.
#include <memory>
#include <string_view>

#include "bindings/bindings.h"
#include "codecs/codec.h"
#include "codecs/codec_list.h"
#include "codecs/finite.h"
#include "codecs/kernels/kernels.h"
#include "codecs/key_encoder.h"
#include "codecs/select_largest.h"
#include "support/crc32c.h"

namespace kvstore_ext {
namespace {

// The bytes where they are, for as long as the caller holds them.
Buffer Borrow(const py::bytes& bytes) {
  const auto view = static_cast<std::string_view>(bytes);
  return Buffer::Borrow(const_cast<char*>(view.data()), view.size());
}

using FloatsInPlace = py::array_t<float, py::array::c_style>;

// A key's encoder, and the round's gradient, which the encoder only points to.
struct BoundKeyEncoder {
  std::unique_ptr<KeyEncoder> encoder;
  size_t elements;
  Floats gradient;
  bool prepared = false;

  float Prepare(const Floats& values, uint64_t round) {
    if (static_cast<size_t>(values.size()) != elements) {
      throw std::invalid_argument("a gradient of " + std::to_string(values.size()) +
                                  " elements for a key of " + std::to_string(elements));
    }
    prepared = false;
    gradient = values;
    const float* data = gradient.data();
    float scaler;
    {
      py::gil_scoped_release without_gil;
      scaler = encoder->Prepare(data, round);
    }
    prepared = scaler == scaler;
    return scaler;
  }

  py::bytes Encode(uint64_t offset, uint64_t length, float scaler, const Draws& draws) {
    if (!prepared) throw std::invalid_argument("encode without a prepared, finite gradient");
    CheckRange(offset, length);
    Buffer bytes;
    {
      py::gil_scoped_release without_gil;
      bytes = encoder->Encode(offset, length, scaler, draws);
    }
    return ToBytes(bytes);
  }

  Floats TakeAll(uint64_t offset, uint64_t length) {
    if (!prepared) throw std::invalid_argument("take_all without a prepared, finite gradient");
    CheckRange(offset, length);
    std::vector<float> values(length);
    encoder->TakeAll(offset, length, values.data());
    return ToArray(values);
  }

  void CheckRange(uint64_t offset, uint64_t length) const {
    if (offset <= elements && length <= elements - offset) return;
    throw std::invalid_argument("elements " + std::to_string(offset) + " to " +
                                std::to_string(offset + length) + " of a key of " +
                                std::to_string(elements));
  }
};

void BindKeyEncoder(py::module_* module) {
  py::class_<BoundKeyEncoder>(*module, "KeyEncoder")
      .def(py::init([](const std::string& specification, int workers, size_t elements) {
             return BoundKeyEncoder{
                 MakeCodec(specification, workers)->MakeEncoder(elements), elements, {}};
           }),
           py::arg("specification"), py::arg("workers"), py::arg("elements"))
      .def("prepare", &BoundKeyEncoder::Prepare, py::arg("gradient"), py::arg("round"))
      .def("encode", &BoundKeyEncoder::Encode, py::arg("offset"), py::arg("length"),
           py::arg("scaler"), py::arg("draws"))
      .def("discard",
           [](BoundKeyEncoder& bound) {
             bound.encoder->Discard();
             bound.prepared = false;
           })
      .def("take_all", &BoundKeyEncoder::TakeAll, py::arg("offset"), py::arg("length"))
      .def("set_momentum",
           [](BoundKeyEncoder& bound, float momentum) { bound.encoder->SetMomentum(momentum); })
      .def("state",
           [](const BoundKeyEncoder& bound) {
             const std::vector<float> state = bound.encoder->state();
             return FloatsInPlace(static_cast<py::ssize_t>(state.size()), state.data());
           })
      .def("set_state", [](BoundKeyEncoder& bound, const Floats& state) {
        bound.encoder->SetState({state.data(), state.data() + state.size()});
        bound.prepared = false;
      });
}

void BindOptions(py::module_* module) {
  py::class_<MethodOption>(*module, "MethodOption")
      .def(py::init([](double least, double most, bool whole, bool above) {
             return MethodOption{"", least, most, whole, above};
           }),
           py::kw_only(), py::arg("least"), py::arg("most") = MethodOption::kNoMost,
           py::arg("whole") = false, py::arg("above") = false)
      .def_readonly("name", &MethodOption::name)
      .def_readonly("least", &MethodOption::least)
      .def_readonly("most", &MethodOption::most)
      .def_readonly("whole", &MethodOption::whole)
      .def_readonly("above", &MethodOption::above)
      .def_readonly("words", &MethodOption::words)
      .def_property_readonly("allowed", &MethodOption::Allowed);
  module->def(
      "codec_options", [](const std::string& name) { return CodecMethodOf(name).options; },
      py::arg("name"));
}

using CodecClass = py::class_<Codec, std::shared_ptr<Codec>>;

void BindSums(CodecClass* codec) {
  codec
      ->def("encode_sum",
            [](const Codec& codec, const Floats& sum, float scaler,
               const Draws& draws) -> py::object {
              const float* data = sum.data();
              const size_t elements = sum.size();
              Buffer bytes;
              {
                py::gil_scoped_release without_gil;
                bytes = codec.EncodeSum(data, elements, scaler, draws);
              }
              if (bytes.data == nullptr) return py::none();
              return ToBytes(bytes);
            })
      .def("decode_sum", [](const Codec& codec, size_t elements, const py::bytes& bytes) {
        FloatsInPlace out(static_cast<py::ssize_t>(elements));
        float* data = out.mutable_data();
        const Buffer buffer = Borrow(bytes);
        {
          py::gil_scoped_release without_gil;
          codec.DecodeSum(data, elements, buffer);
        }
        return out;
      });
}

void BindCodec(py::module_* module) {
  CodecClass codec(*module, "Codec");
  codec
      .def(py::init([](const std::string& specification, int workers) {
             return std::const_pointer_cast<Codec>(MakeCodec(specification, workers));
           }),
           py::arg("specification"), py::arg("workers"))
      .def("scaler",
           [](const Codec& codec, const Floats& values) {
             const float* data = values.data();
             const size_t elements = values.size();
             py::gil_scoped_release without_gil;
             return codec.Scaler(data, elements);
           })
      .def("encode",
           [](const Codec& codec, const Floats& values, float scaler, const Draws& draws) {
             const float* data = values.data();
             const size_t elements = values.size();
             Buffer bytes;
             {
               py::gil_scoped_release without_gil;
               bytes = codec.Encode(data, elements, scaler, draws);
             }
             return ToBytes(bytes);
           })
      .def("encode_clipped",
           [](const Codec& codec, const Floats& values, float limit, float scaler,
              const Draws& draws) {
             const float* data = values.data();
             const size_t elements = values.size();
             Buffer bytes;
             {
               py::gil_scoped_release without_gil;
               bytes = codec.EncodeClipped(data, elements, limit, scaler, draws);
             }
             return ToBytes(bytes);
           })
      .def(
          "add_to",
          [](const Codec& codec, FloatsInPlace sum, const py::bytes& bytes) {
            float* data = sum.mutable_data();
            const size_t elements = sum.size();
            const Buffer buffer = Borrow(bytes);
            py::gil_scoped_release without_gil;
            codec.AddTo(data, elements, buffer);
          },
          py::arg("sum").noconvert(), py::arg("bytes"))
      .def("scaler_of",
           [](const Codec& codec, const py::bytes& bytes) { return codec.ScalerOf(Borrow(bytes)); })
      .def("bytes_per_element", &Codec::bytes_per_element)
      .def("alignment", &Codec::alignment)
      .def("shares_scaler", &Codec::shares_scaler)
      .def("error_feedback", &Codec::error_feedback);
  BindSums(&codec);
}

// Of a contiguous array of float32, float64 or float16.
bool IsAllFinite(const py::array& values) {
  const py::ssize_t bytes = values.itemsize();
  const DType dtype = bytes == 2 ? DType::kFloat16 : bytes == 4 ? DType::kFloat32 : DType::kFloat64;
  const auto* data = static_cast<const char*>(values.data());
  const auto elements = static_cast<size_t>(values.size());
  py::gil_scoped_release without_gil;
  return AllFinite(dtype, data, elements);
}

void BindKernels(py::module_* module) {
  module->def("all_finite", &IsAllFinite, py::arg("values"));
  module->def("select_largest", [](const Floats& values, size_t count) {
    const auto elements = static_cast<size_t>(values.size());
    if (count > elements) {
      throw std::invalid_argument(std::to_string(count) + " of " + std::to_string(elements) +
                                  " values");
    }
    const float* data = values.data();
    py::gil_scoped_release without_gil;
    return SelectLargest(data, elements, count);
  });
  module->def(
      "crc32c",
      [](const py::buffer& bytes, bool by_table) {
        const py::buffer_info info = bytes.request();
        const auto* data = static_cast<const char*>(info.ptr);
        const auto count = static_cast<size_t>(info.size * info.itemsize);
        py::gil_scoped_release without_gil;
        return by_table ? Crc32cByTable(data, count) : Crc32c(data, count);
      },
      py::arg("bytes"), py::arg("by_table") = false);
  module->def("use_kernels", &UseKernels, py::arg("name"));
  module->def("kernels", &AvailableKernels);
}

}  // namespace

void BindCodecs(py::module_* module) {
  py::class_<Draws>(*module, "Draws")
      .def(py::init<uint64_t, uint32_t, uint64_t, uint64_t>(), py::arg("seed"), py::arg("sender"),
           py::arg("key"), py::arg("round"))
      .def("get", &Draws::Get, py::arg("i"))
      .def("from_offset", &Draws::From, py::arg("offset"));
  BindOptions(module);
  BindCodec(module);
  BindKeyEncoder(module);
  BindKernels(module);
}

}  // namespace kvstore_ext
