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

// The slices of a key, in order: every element in exactly one, none over slice_bytes, lengths
// differing by at most one element; a key without elements has one empty slice, so that it takes
// part in rounds like any other. Consecutive slices go to consecutive servers, and there are as
// many for each where that makes none too small: the busiest server's link sets the pace of all.
//
// A pure function of its arguments: every worker and every run places alike, whatever the order in
// which keys are first seen. P3 (section 4.2) places round robin in order of first use instead.
//
// Throws std::invalid_argument where element_bytes or servers is below 1, or slice_bytes below
// element_bytes.
std::vector<Slice> SliceKey(uint64_t key, uint64_t elements, size_t element_bytes,
                            size_t slice_bytes, int servers);

}  // namespace kvstore_ext
