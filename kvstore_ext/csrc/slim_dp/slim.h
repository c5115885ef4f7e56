// What a Slim-DP worker and server agree on (Sun et al., AAAI 2018): which part of a key's update
// travels, and how.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codecs/method_options.h"
#include "keys/slice_declaration.h"
#include "support/subset.h"
#include "transport/message.h"

namespace kvstore_ext {

// The core that holds, and one that waits to take effect.
constexpr size_t kCoresKept = 2;

struct SlimOptions {
  double share = 1;                   // of the elements that travel in a round: alpha
  double core_share = 1;              // of those that always do: beta
  uint64_t rounds_per_selection = 1;  // from one choice of the core to the next: q
  uint64_t delay = 0;                 // rounds until a chosen core takes effect
  double server_rate = 1;             // by which the servers multiply the mean of the updates
  uint64_t seed = 0;                  // of the explorers
  bool sends_indices = false;   // of the explorer, as the paper does; or the server draws it again
  bool mean_of_pushed = false;  // an element's mean is over who has pushed it; or over all workers
  std::string values;           // the compression of updates (see codec.h); empty for none

  // The same elements always: nothing is ever selected.
  bool fixed() const { return core_share == 0 || core_share == 1; }

  // The selection whose core holds in a round: the first, 0, is of the initial parameters.
  uint64_t SelectionOf(uint64_t round) const {
    return round <= delay + 1 ? 0 : (round - 1 - delay) / rounds_per_selection;
  }

  // Whether all elements of the updates are pushed, for the next selection.
  bool IsFull(uint64_t round) const { return round % rounds_per_selection == 0; }

  // How many bytes of an update are the indices of so many explored elements.
  size_t IndexBytes(uint32_t explorers) const {
    return sends_indices ? size_t{explorers} * sizeof(uint32_t) : 0;
  }

  // What its specification says: all of these, then, if values are compressed, the word "values:"
  // and the specification of their codec.
  static const std::vector<MethodOption>& Table();

  // Throws std::invalid_argument as MethodValues does, and for what does not fit together; what is
  // said of values their codec checks.
  static SlimOptions Parse(const std::string& specification);
};

// Throws std::invalid_argument for a key whose type Slim-DP does not take.
void CheckSlimType(const SliceDeclaration& declaration);

// Stands before the values of an update. They are those of the core and the explorer in the order
// of the elements, or of all elements where it is full, and encoded where values are compressed.
// Where the explorer's indices travel they come last, 4 bytes each.
struct UpdateHeader {
  uint64_t signature = 0;  // of the core's members; see Subset
  uint64_t round = 0;      // over all runs: the explorer's stream follows from it
  uint32_t selection = 0;
  uint32_t explorers = 0;  // elements of the slice
  uint32_t rank = 0;
  uint32_t full = 0;
};
static_assert(sizeof(UpdateHeader) == 32, "it crosses the wire as it lies in memory");

// Between worker and server about a slice's core. A server tells all workers a core that was
// chosen, or one worker that its push came with another core and was not counted; where the server
// has no core of that selection it says so without members, and the worker answers with its own.
struct CoreMessage {
  uint64_t selection = 0;
  bool refused = false;  // a push was not counted
  Buffer members;        // see Subset::ToBuffer; nothing where the server asks for them

  // As a message of type kMethod, in which key and slice are filled in later; and back. Its
  // encoding is kSkipped where a push was refused, and its round the selection.
  Message Pack() const;
  static CoreMessage Unpack(const Message& message);
};

// The members of a core as they travel (Subset::ToBuffer). Throws Unfit for bytes that are none.
Subset SubsetOf(size_t elements, const Buffer& bytes);

// From which the explorer of a slice is drawn.
uint64_t ExplorerStream(const SlimOptions& options, int rank, uint64_t key, uint64_t round,
                        uint64_t offset);

}  // namespace kvstore_ext
