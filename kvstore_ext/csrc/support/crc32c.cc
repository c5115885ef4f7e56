#include "support/crc32c.h"

#include "support/wire.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define KVSTORE_EXT_CRC32 1
#endif

namespace kvstore_ext {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // its bits from the lowest power on
constexpr size_t kWord = sizeof(uint64_t);

// The instruction's result takes three cycles, in which two other streams can begin theirs. So many
// bytes a stream are worth putting their results together.
constexpr size_t kStride = 1024;

struct Tables {
  uint32_t followed[kWord][256];           // what a byte becomes that so many others follow
  uint32_t behind[sizeof(uint32_t)][256];  // what a state's bytes become behind kStride zeros

  Tables() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t state = byte;
      for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ ((state & 1) != 0 ? kPolynomial : 0);
      followed[0][byte] = state;
    }
    for (size_t others = 1; others < kWord; ++others) {
      for (size_t byte = 0; byte < 256; ++byte) {
        followed[others][byte] = BehindZero(followed[others - 1][byte]);
      }
    }
    for (uint32_t bit = 0; bit < 32; ++bit) {
      uint32_t state = uint32_t{1} << bit;
      for (size_t i = 0; i < kStride; ++i) state = BehindZero(state);
      const size_t lowest = size_t{1} << bit % 8;
      // All numbers with this bit as their highest, from those without it.
      uint32_t* table = behind[bit / 8];
      if (lowest == 1) table[0] = 0;
      for (size_t below = 0; below < lowest; ++below) table[lowest + below] = table[below] ^ state;
    }
  }

  uint32_t BehindZero(uint32_t state) const { return followed[0][state & 0xff] ^ state >> 8; }

  uint32_t BehindStride(uint32_t state) const {
    return behind[0][state & 0xff] ^ behind[1][state >> 8 & 0xff] ^ behind[2][state >> 16 & 0xff] ^
           behind[3][state >> 24];
  }
};

const Tables& tables() {
  static const Tables made;
  return made;
}

uint32_t ByTable(uint32_t state, const char* bytes, size_t count) {
  const auto& followed = tables().followed;
  for (; count >= kWord; bytes += kWord, count -= kWord) {
    const uint64_t word = Load<uint64_t>(bytes) ^ state;
    state = 0;
    for (size_t i = 0; i < kWord; ++i) state ^= followed[kWord - 1 - i][word >> 8 * i & 0xff];
  }
  for (; count > 0; ++bytes, --count) {
    state = followed[0][(state ^ static_cast<unsigned char>(*bytes)) & 0xff] ^ state >> 8;
  }
  return state;
}

#ifdef KVSTORE_EXT_CRC32
__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t state, const char* bytes,
                                                         size_t count) {
  const Tables& made = tables();
  uint64_t first = state;
  for (; count >= 3 * kStride; bytes += 3 * kStride, count -= 3 * kStride) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kStride; i += kWord) {
      first = __builtin_ia32_crc32di(first, Load<uint64_t>(bytes + i));
      second = __builtin_ia32_crc32di(second, Load<uint64_t>(bytes + kStride + i));
      third = __builtin_ia32_crc32di(third, Load<uint64_t>(bytes + 2 * kStride + i));
    }
    first = made.BehindStride(static_cast<uint32_t>(first)) ^ second;
    first = made.BehindStride(static_cast<uint32_t>(first)) ^ third;
  }
  for (; count >= kWord; bytes += kWord, count -= kWord) {
    first = __builtin_ia32_crc32di(first, Load<uint64_t>(bytes));
  }
  auto last = static_cast<uint32_t>(first);
  for (; count > 0; ++bytes, --count) {
    last = __builtin_ia32_crc32qi(last, static_cast<unsigned char>(*bytes));
  }
  return last;
}
#endif

using Function = uint32_t (*)(uint32_t state, const char* bytes, size_t count);

Function Best() {
#ifdef KVSTORE_EXT_CRC32
  if (__builtin_cpu_supports("sse4.2")) return ByInstruction;
#endif
  return ByTable;
}

}  // namespace

uint32_t Crc32c(const char* bytes, size_t count, uint32_t before) {
  static const Function best = Best();
  return ~best(~before, bytes, count);
}

uint32_t Crc32cByTable(const char* bytes, size_t count, uint32_t before) {
  return ~ByTable(~before, bytes, count);
}

}  // namespace kvstore_ext
