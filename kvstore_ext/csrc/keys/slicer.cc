#include "keys/slicer.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/random.h"

namespace kvstore_ext {
namespace {

// A smaller key, or slice, costs more in messages than even shares gain. By the size of slices
// alone larger and larger keys stay whole with more servers, so that of a small network one server
// has much more than others (python -m benchmarks.shares).
constexpr uint64_t kLeastSharedBytes = 32768;
constexpr uint64_t kLeastEvenBytes = 2048;

// Few bytes may encode many elements, whose first values travel as they are: of 8 bytes each, they
// fit a message (Header::whole) and what ps-lite and ZMQ count in an int.
constexpr uint64_t kMostElements = uint64_t{1} << 27;

// Of so many units, each of so many elements and bytes.
uint64_t CountSlices(uint64_t units, uint64_t alignment, double unit_bytes, size_t slice_bytes,
                     int servers) {
  const uint64_t fit = std::min<uint64_t>(static_cast<uint64_t>(slice_bytes / unit_bytes),
                                          kMostElements / alignment);
  const uint64_t most = std::max<uint64_t>(1, fit);
  const uint64_t count = std::max<uint64_t>(1, (units + most - 1) / most);
  const uint64_t even = (count + servers - 1) / servers * servers;
  const double bytes = units * unit_bytes;
  const bool large = bytes >= kLeastSharedBytes && bytes / even >= kLeastEvenBytes;
  return large && even <= units ? even : count;
}

std::string Shown(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace

std::vector<Slice> SliceKey(uint64_t key, uint64_t elements, double element_bytes,
                            size_t slice_bytes, int servers, uint64_t alignment) {
  if (!(element_bytes > 0) || servers < 1 || alignment < 1 || slice_bytes < element_bytes) {
    throw std::invalid_argument("cannot slice elements of " + Shown(element_bytes) +
                                " bytes into slices of " + std::to_string(slice_bytes) +
                                " bytes for " + std::to_string(servers) + " servers");
  }
  const uint64_t units = (elements + alignment - 1) / alignment;
  const uint64_t count =
      CountSlices(units, alignment, element_bytes * alignment, slice_bytes, servers);
  // Neighbouring keys must not start at neighbouring servers only: layers repeat in patterns, and a
  // pattern as long as the number of servers would give one server all of the large layers.
  const uint64_t first_server = Mix(key) % servers;
  std::vector<Slice> slices;
  slices.reserve(count);
  for (uint64_t i = 0, offset = 0; i < count; ++i) {
    const uint64_t most = (units / count + (i < units % count ? 1 : 0)) * alignment;
    const uint64_t length = std::min(most, elements - offset);
    slices.push_back(
        {static_cast<uint32_t>(i), offset, length, static_cast<int>((first_server + i) % servers)});
    offset += length;
  }
  return slices;
}

}  // namespace kvstore_ext
