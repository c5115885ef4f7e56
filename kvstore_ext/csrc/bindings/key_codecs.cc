// What Python sees of the codecs that keys have at their worker.
#include "bindings/bindings.h"
#include "keys/gradient_codec.h"
#include "keys/plain_codec.h"

namespace kvstore_ext {

void BindKeyCodecs(py::module_* module) {
  py::class_<KeyCodec, std::shared_ptr<KeyCodec>>(*module, "KeyCodec")
      .def("scaler", &KeyCodec::scaler)
      .def("zeros", [](const KeyCodec& codec) {
        const ZeroCount count = codec.zeros();
        return py::make_tuple(count.zeros, count.looked_at);
      });
  py::enum_<NonFinite>(*module, "NonFinite")
      .value("KEEP", NonFinite::kKeep)
      .value("SKIP", NonFinite::kSkip)
      .value("RAISE", NonFinite::kRaise);
  py::class_<PlainCodec, KeyCodec, std::shared_ptr<PlainCodec>>(*module, "PlainCodec")
      .def(py::init<std::string, NonFinite>(), py::arg("specification") = "",
           py::arg("non_finite") = NonFinite::kKeep);
  py::class_<GradientCodec, KeyCodec, std::shared_ptr<GradientCodec>>(*module, "GradientCodec")
      .def(py::init<const std::string&, int, bool>(), py::arg("specification"), py::arg("workers"),
           py::arg("raises"))
      .def("rounds", &GradientCodec::rounds)
      .def("state", [](const GradientCodec& codec) { return ToArray(codec.state()); })
      .def(
          "set_state",
          [](GradientCodec& codec, uint64_t rounds, const Floats& state) {
            codec.SetState(rounds, ToVector(state));
          },
          py::arg("rounds"), py::arg("state"))
      .def("set_momentum", &GradientCodec::SetMomentum);
}

}  // namespace kvstore_ext
