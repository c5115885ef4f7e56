#include "slicer.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "random.h"

namespace kvstore_ext {
namespace {

// Below this, the cost of a message outweighs what even shares gain.
constexpr uint64_t kLeastEvenBytes = 16384;

uint64_t CountSlices(uint64_t elements, size_t element_bytes, size_t slice_bytes, int servers) {
  const uint64_t most = slice_bytes / element_bytes;
  const uint64_t count = std::max<uint64_t>(1, (elements + most - 1) / most);
  const uint64_t even = (count + servers - 1) / servers * servers;
  return elements * element_bytes / even >= kLeastEvenBytes ? even : count;
}

}  // namespace

std::vector<Slice> SliceKey(uint64_t key, uint64_t elements, size_t element_bytes,
                            size_t slice_bytes, int servers) {
  if (element_bytes < 1 || servers < 1 || slice_bytes < element_bytes) {
    throw std::invalid_argument("cannot slice elements of " + std::to_string(element_bytes) +
                                " bytes into slices of " + std::to_string(slice_bytes) +
                                " bytes for " + std::to_string(servers) + " servers");
  }
  const uint64_t count = CountSlices(elements, element_bytes, slice_bytes, servers);
  // Neighbouring keys must not start at neighbouring servers only: layers repeat in patterns, and a
  // pattern as long as the number of servers would give one server all of the large layers.
  const uint64_t first_server = Mix(key) % servers;
  std::vector<Slice> slices;
  slices.reserve(count);
  for (uint64_t i = 0, offset = 0; i < count; ++i) {
    const uint64_t length = elements / count + (i < elements % count ? 1 : 0);
    slices.push_back(
        {static_cast<uint32_t>(i), offset, length, static_cast<int>((first_server + i) % servers)});
    offset += length;
  }
  return slices;
}

}  // namespace kvstore_ext
