// Cuts a key into slices and gives each slice to a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvstore_ext {

struct Slice {
  uint32_t index;   // within the key
  uint64_t offset;  // elements from the key's beginning
  uint64_t length;  // elements
  int server;       // rank
};

// The slices of a key, in order; every element is in exactly one. Slices begin at multiples of
// `alignment` elements, and their lengths differ by at most so many, but for the last one,
// which has what is left. As it travels no slice takes more than slice_bytes, unless already
// `alignment` elements do. A key without elements has one
// empty slice, so that it takes part in rounds like any other.
//
// Consecutive slices go to consecutive servers. All servers get the same number of them where that
// makes none too small: the busiest server's link sets the pace of all.
//
// A pure function of its arguments: every worker and every run places alike, whatever the order in
// which keys are first seen. P3 (section 4.2) places round robin in order of first use instead.
//
// Throws std::invalid_argument where servers or alignment is below 1, element_bytes, which an
// element takes as it travels, is not above 0, or slice_bytes is below that.
std::vector<Slice> SliceKey(uint64_t key, uint64_t elements, double element_bytes,
                            size_t slice_bytes, int servers, uint64_t alignment = 1);

}  // namespace kvstore_ext
