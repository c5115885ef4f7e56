// What Python sees of Slim-DP: workers' and servers' cores, and the drawing of explorers for tests
// and simulations.
#include <algorithm>
#include <optional>
#include <utility>

#include "bindings/bindings.h"
#include "slim_dp/explorer.h"
#include "slim_dp/slim_key.h"
#include "slim_dp/slim_server.h"
#include "support/random.h"
#include "support/subset.h"

namespace kvstore_ext {
namespace {

Subset ToSubset(size_t elements, const std::vector<size_t>& members) {
  Subset subset(elements);
  for (const size_t element : members) {
    if (element >= elements || subset.Has(element)) {
      throw std::invalid_argument("element " + std::to_string(element) + " of " +
                                  std::to_string(elements));
    }
    subset.Insert(element);
  }
  return subset;
}

std::vector<size_t> ToVector(const Subset& subset) {
  std::vector<size_t> members;
  subset.ForEach([&](size_t element) { members.push_back(element); });
  return members;
}

py::array_t<bool> ToMask(const Subset& subset) {
  py::array_t<bool> mask(static_cast<py::ssize_t>(subset.elements()));
  bool* const values = mask.mutable_data();
  std::fill_n(values, subset.elements(), false);
  subset.ForEach([&](size_t element) { values[element] = true; });
  return mask;
}

py::array_t<float> TakenOut(const Subset& subset, const Floats& values) {
  if (static_cast<size_t>(values.size()) != subset.elements()) {
    throw std::invalid_argument(std::to_string(values.size()) + " values of " +
                                std::to_string(subset.elements()) + " elements");
  }
  py::array_t<float> taken(static_cast<py::ssize_t>(subset.count()));
  subset.TakeOut(values.data(), taken.mutable_data());
  return taken;
}

Buffer CopyOf(const Floats& values) {
  return Buffer::Borrow(reinterpret_cast<char*>(const_cast<float*>(values.data())), values.nbytes())
      .Copy();
}

// By a slice's name, its parameters and its update, if any; for tests and benchmarks.
std::unique_ptr<CoreSelection> MakeSelection(
    const std::map<SliceName, std::pair<Floats, std::optional<Floats>>>& slices) {
  std::map<SliceName, std::shared_ptr<SlimSlice::Snapshot>> snapshots;
  for (const auto& [name, slice] : slices) {
    if (slice.second && slice.second->size() != slice.first.size()) {
      throw std::invalid_argument("an update of " + std::to_string(slice.second->size()) + " of " +
                                  std::to_string(slice.first.size()) + " parameters");
    }
    const Buffer update = slice.second ? CopyOf(*slice.second) : Buffer();
    snapshots.emplace(name, std::make_shared<SlimSlice::Snapshot>(0, CopyOf(slice.first), update));
  }
  return std::make_unique<CoreSelection>(std::move(snapshots));
}

// Another thread may have the lock while it looks at all elements.
template <typename Call>
auto CalledWithoutGil(Call call) {
  py::gil_scoped_release without_gil;
  return call();
}

void BindSelection(py::module_* module) {
  module->attr("HALVES") = CoreSelection::kHalves;
  module->attr("BRACKET_SAMPLE") = kBracketSample;
  module->def(
      "bracket_of",
      [](const py::array_t<int32_t, py::array::c_style | py::array::forcecast>& sample,
         uint64_t elements, uint64_t count) {
        const std::vector<int32_t> magnitudes(sample.data(), sample.data() + sample.size());
        const Bracket bracket = BracketOf(magnitudes, elements, count);
        return py::make_tuple(bracket.least, bracket.most);
      },
      py::arg("sample"), py::arg("elements"), py::arg("count"));
  module->attr("WHOLE_BRACKET") = py::make_tuple(Bracket().least, Bracket().most);
  py::class_<CoreSelection>(*module, "CoreSelection")
      .def(py::init(&MakeSelection), py::arg("snapshots"))
      .def("sums",
           [](const CoreSelection& selection) {
             py::dict result;
             for (const auto& entry : selection.SumsOfSlices()) {
               result[py::make_tuple(entry.first.first, entry.first.second)] =
                   py::make_tuple(entry.second.parameters, entry.second.update);
             }
             return result;
           })
      .def(
          "sample",
          [](CoreSelection& selection, float c, size_t step) {
            return ToArray(CalledWithoutGil([&] { return selection.Sample(c, step); }));
          },
          py::arg("c"), py::arg("step"))
      .def(
          "divide",
          [](CoreSelection& selection, int32_t least, int32_t most) {
            return selection.Divide({least, most});
          },
          py::arg("least"), py::arg("most"), WithoutGil())
      .def("count_upper",
           [](const CoreSelection& selection) {
             return ToArray(CalledWithoutGil([&] { return selection.CountUpper(); }));
           })
      .def("count_lower",
           [](const CoreSelection& selection, uint32_t upper) {
             return ToArray(CalledWithoutGil([&] { return selection.CountLower(upper); }));
           })
      .def("count_equal", &CoreSelection::CountEqual, WithoutGil())
      .def("choose", &CoreSelection::Choose, WithoutGil());
}

void BindSubsets(py::module_* module) {
  py::class_<Subset>(*module, "Subset")
      .def(py::init(&ToSubset), py::arg("elements"), py::arg("members"))
      .def("members", [](const Subset& subset) { return ToVector(subset); })
      .def("mask", &ToMask)
      .def("signature", &Subset::signature)
      .def("take_out", &TakenOut, py::arg("values"))
      .def("explore", &Explore, py::arg("count"), py::arg("stream"));
  module->def("stream_of", &StreamOf, py::arg("seed"), py::arg("sender"), py::arg("key"),
              py::arg("round"));
  module->def("mix", &Mix);
  module->def("draw_share", &DrawShare, py::arg("all"), py::arg("part"), py::arg("drawn"),
              py::arg("stream"), py::arg("position"));
  module->def("slim_options", &SlimOptions::Table);
}

void BindSlimWorker(py::module_* module) {
  py::class_<SlimModel, std::shared_ptr<SlimModel>>(*module, "SlimModel")
      .def(py::init<const std::string&, int>(), py::arg("specification"), py::arg("rank"))
      .def("set_sizes", &SlimModel::SetSizes, py::arg("core"), py::arg("together"), WithoutGil())
      .def(
          "resume",
          [](SlimModel& model, uint64_t rounds, uint64_t begun) { model.Resume(rounds - begun); },
          py::arg("rounds"), py::arg("begun"), WithoutGil());
  py::class_<SlimKey, KeyCodec, std::shared_ptr<SlimKey>>(*module, "SlimKey")
      .def(py::init<std::shared_ptr<SlimModel>, int>(), py::arg("model"), py::arg("workers"))
      .def("base", [](const SlimKey& key) { return ToArray(key.base()); })
      .def("set_base",
           [](SlimKey& key, const Floats& base) { key.SetBase(kvstore_ext::ToVector(base)); })
      .def("cores",
           [](const SlimKey& key) {
             std::map<uint64_t, std::map<uint32_t, py::bytes>> cores;
             for (const Slice& slice : key.slices()) {
               for (const auto& core : key.CoresOf(slice)) {
                 cores[core.first][slice.index] = ToBytes(core.second->members.ToBuffer());
               }
             }
             return cores;
           })
      .def(
          "set_core",
          [](SlimKey& key, uint32_t slice, uint64_t selection, const py::bytes& members) {
            key.SetCore(key.slices().at(slice), selection, ToBuffer(members));
          },
          py::arg("slice"), py::arg("selection"), py::arg("members"));
}

void BindSlimServer(py::module_* module) {
  py::class_<SlimServer, ServerMethod, std::shared_ptr<SlimServer>>(*module, "SlimServer")
      .def(py::init([](double silence, double patience) {
             Limits limits;
             limits.silence = silence;
             limits.patience = patience;
             return std::make_shared<SlimServer>(limits);
           }),
           py::kw_only(), py::arg("silence"), py::arg("patience"))
      .def("await_round", &SlimServer::AwaitRound, py::arg("store"), py::arg("round"),
           py::arg("slices"), py::arg("seconds"), WithoutGil())
      .def("await_selection", &SlimServer::AwaitSelection, py::arg("store"), py::arg("round"),
           py::arg("slices"), WithoutGil())
      .def("set_cores", &SlimServer::SetCores, py::arg("selection"), py::arg("cores"), WithoutGil())
      .def(
          "resume",
          [](SlimServer& server, uint64_t key, uint32_t slice, const py::bytes& parameters,
             const std::map<uint64_t, py::bytes>& cores) {
            const Buffer values = ToBuffer(parameters);
            std::map<uint64_t, Subset> subsets;
            for (const auto& core : cores) {
              subsets.emplace(core.first,
                              Subset(values.size / sizeof(float), ToBuffer(core.second)));
            }
            py::gil_scoped_release without_gil;
            server.Resume({key, slice}, values, std::move(subsets));
          },
          py::arg("key"), py::arg("slice"), py::arg("parameters"), py::arg("cores"));
}

}  // namespace

void BindSlim(py::module_* module) {
  BindSubsets(module);
  BindSelection(module);
  BindSlimWorker(module);
  BindSlimServer(module);
}

}  // namespace kvstore_ext
