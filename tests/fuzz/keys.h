// Keys of every method, and what a process of the job would send of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "input.h"
#include "keys/slice_declaration.h"
#include "support/subset.h"

namespace kvstore_ext {

struct KeyKind {
  const char* method;
  DType dtype = DType::kFloat32;
};

constexpr KeyKind kKinds[] = {
    {""},
    {"", DType::kFloat16},
    {"", DType::kFloat64},
    {kBroadcast},
    {"terngrad clip_sigma=2.5 scaler_sharing=1 seed=0"},
    {"terngrad clip_sigma=0 scaler_sharing=0 seed=0", DType::kFloat16},
    {"qsgd bits=4 bucket=64 norm=l2 seed=0 error_feedback=1"},
    {"qsgd bits=8 bucket=7 norm=max seed=0 error_feedback=0"},
    {"dgc ratio=0.1 warmup_rounds=0 warmup_stages=1 clip_norm=1 momentum_masking=1"},
    {"onebit bucket=64 error_feedback=1"},
    {"signsgd scale=0.5 seed=0"},
    {"fp16 error_feedback=1"},
    {"2bit threshold=0.5", DType::kFloat16},
    {"slim_dp alpha=0.5 beta=0.25 q=2 core_delay=0 server_lr=1 seed=0 explorer=seed "
     "explorer_mean=pushed"},
    {"slim_dp alpha=0.5 beta=0 q=3 core_delay=1 server_lr=1 seed=0 explorer=keys "
     "explorer_mean=all values: terngrad clip_sigma=2.5 scaler_sharing=1 seed=0"},
    {"slim_dp alpha=1 beta=1 q=1 core_delay=0 server_lr=1 seed=0 explorer=seed "
     "explorer_mean=pushed values: 2bit threshold=0.5"},
};
constexpr size_t kKindCount = sizeof kKinds / sizeof *kKinds;

// That of a number below 256. The last ones stand for a kind that came later.
inline KeyKind KindOf(size_t number) {
  return number >= 256 - kKindCount ? KeyKind{kSkipping} : kKinds[number % kKindCount];
}

inline bool IsSlim(const KeyKind& kind) {
  return std::string(kind.method).rfind("slim_dp", 0) == 0;
}

// Elements of one.
inline size_t SizeOfKey(Input* input) {
  constexpr size_t kSizes[] = {0, 1, 5, 70, 200};
  return kSizes[input->Below(sizeof kSizes / sizeof *kSizes)];
}

// Bytes of credit, more than are ever sent.
constexpr uint32_t kPlenty = 1U << 30;

SliceDeclaration Declared(const KeyKind& kind, uint64_t elements);

// What is sent of a slice: by a worker, or as the sum by a server.
struct Sent {
  KeyKind kind;
  uint64_t key = 0;
  size_t elements = 0;
  int rank = 0;
  uint64_t round = 0;
  int workers = 1;
  bool is_sum = false;
  size_t of_update = 0;          // bytes of the update that a sum of Slim-DP answers
  const Subset* core = nullptr;  // of an update of Slim-DP, where the server has told one
};

// Cores of a slice of Slim-DP, as its server tells them.
class ToldCores {
 public:
  // Any message of the server's.
  void Hear(const Message& told, size_t elements);

  // That of the selection which holds in a round; nothing where it was not told.
  const Subset* Of(const KeyKind& kind, uint64_t round) const;

 private:
  std::map<uint64_t, Subset> cores_;  // by selection
};

// Numbers as they are, or encoded, of what the input says; what it has more lies over the encoding.
Buffer PlainPayload(const Sent& sent, Input* input);
Buffer EncodedPayload(const Sent& sent, Input* input);

// The message with something about it changed, as the input says; mostly nothing.
Message Changed(Message message, Input* input);

}  // namespace kvstore_ext
