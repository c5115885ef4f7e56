#include "codecs/kernels/kernels.h"

#include <atomic>
#include <cmath>
#include <stdexcept>

#include "support/float16.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define KVSTORE_EXT_X86 1
#endif

// To an int32_t, ties to even. GCC makes one instruction for a whole vector of it, but not of
// lrintf, whose result is longer; clang has only that.
#ifdef __clang__
#define KVSTORE_EXT_TO_NEAREST(number) static_cast<int32_t>(__builtin_lrintf(number))
#else
#define KVSTORE_EXT_TO_NEAREST(number) __builtin_irintf(number)
#endif

namespace kvstore_ext {
namespace {

#define KVSTORE_EXT_VECTOR_BYTES 16
namespace plain {
#include "codecs/kernels/kernels.inc"
}  // namespace plain

#ifdef KVSTORE_EXT_X86

#pragma GCC push_options
#pragma GCC target("avx2")
#undef KVSTORE_EXT_VECTOR_BYTES
#define KVSTORE_EXT_VECTOR_BYTES 32
namespace avx2 {
#include "codecs/kernels/kernels.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#undef KVSTORE_EXT_VECTOR_BYTES
#define KVSTORE_EXT_VECTOR_BYTES 64
namespace avx512 {
#include "codecs/kernels/kernels.inc"
}  // namespace avx512
#pragma GCC pop_options

#endif

struct Choice {
  const char* name;
  const Kernels* kernels;
};

std::vector<Choice> Choices() {
  std::vector<Choice> choices = {{"plain", &plain::kKernels}};
#ifdef KVSTORE_EXT_X86
  if (__builtin_cpu_supports("avx2")) choices.push_back({"avx2", &avx2::kKernels});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    choices.push_back({"avx512", &avx512::kKernels});
  }
#endif
  return choices;
}

std::atomic<const Kernels*>& InUse() {
  static std::atomic<const Kernels*> kernels{Choices().back().kernels};
  return kernels;
}

}  // namespace

const Kernels& kernels() { return *InUse().load(std::memory_order_relaxed); }

void UseKernels(const std::string& name) {
  const std::vector<Choice> choices = Choices();
  std::string names;
  for (const Choice& choice : choices) {
    if (name == choice.name || (name.empty() && choice.name == choices.back().name)) {
      InUse() = choice.kernels;
      return;
    }
    names += std::string(names.empty() ? "" : ", ") + choice.name;
  }
  throw std::invalid_argument("there are no kernels '" + name + "' for this processor; there are " +
                              names);
}

std::vector<std::string> AvailableKernels() {
  std::vector<std::string> names;
  for (const Choice& choice : Choices()) names.emplace_back(choice.name);
  return names;
}

}  // namespace kvstore_ext
