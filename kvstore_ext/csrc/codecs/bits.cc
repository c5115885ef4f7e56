#include "codecs/bits.h"

#include <cstring>

#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr size_t kGroup = 8;  // codes, which take `width` bytes

uint64_t Ones(int count) { return (1ULL << count) - 1; }

// Pairs of neighbours move together, then pairs of pairs, then those.
uint64_t Squeeze(uint64_t codes, int width) {
  const uint64_t pairs = Ones(width) * 0x0001000100010001ULL;
  codes = (codes & pairs) | (codes >> (8 - width) & pairs << width);
  const uint64_t fours = Ones(2 * width) * 0x0000000100000001ULL;
  codes = (codes & fours) | (codes >> (16 - 2 * width) & fours << 2 * width);
  const uint64_t eights = Ones(4 * width);
  return (codes & eights) | (codes >> (32 - 4 * width) & eights << 4 * width);
}

uint64_t Spread(uint64_t codes, int width) {
  const uint64_t eights = Ones(4 * width);
  codes = (codes & eights) | (codes & eights << 4 * width) << (32 - 4 * width);
  const uint64_t fours = Ones(2 * width) * 0x0000000100000001ULL;
  codes = (codes & fours) | (codes & fours << 2 * width) << (16 - 2 * width);
  const uint64_t pairs = Ones(width) * 0x0001000100010001ULL;
  return (codes & pairs) | (codes & pairs << width) << (8 - width);
}

template <int kWidth>
void PackWidth(const uint8_t* codes, size_t count, char* bytes) {
  uint64_t group = 0;
  for (; count >= kGroup; count -= kGroup, codes += kGroup, bytes += kWidth) {
    std::memcpy(&group, codes, kGroup);
    group = Squeeze(group, kWidth);
    std::memcpy(bytes, &group, kWidth);
  }
  group = 0;
  std::memcpy(&group, codes, count);
  group = Squeeze(group, kWidth);
  std::memcpy(bytes, &group, DivideUp(count * kWidth, 8));
}

template <int kWidth>
void UnpackWidth(const char* bytes, size_t count, uint8_t* codes) {
  uint64_t group = 0;
  for (; count >= kGroup; count -= kGroup, codes += kGroup, bytes += kWidth) {
    group = Spread(LoadBytes<kWidth>(bytes), kWidth);
    std::memcpy(codes, &group, kGroup);
  }
  group = 0;
  std::memcpy(&group, bytes, DivideUp(count * kWidth, 8));
  group = Spread(group, kWidth);
  std::memcpy(codes, &group, count);
}

using Packing = void (*)(const uint8_t*, size_t, char*);
using Unpacking = void (*)(const char*, size_t, uint8_t*);
constexpr Packing kPack[] = {nullptr,      PackWidth<1>, PackWidth<2>, PackWidth<3>, PackWidth<4>,
                             PackWidth<5>, PackWidth<6>, PackWidth<7>, PackWidth<8>};
constexpr Unpacking kUnpack[] = {nullptr,        UnpackWidth<1>, UnpackWidth<2>,
                                 UnpackWidth<3>, UnpackWidth<4>, UnpackWidth<5>,
                                 UnpackWidth<6>, UnpackWidth<7>, UnpackWidth<8>};

}  // namespace

void PackBits(const uint8_t* codes, size_t count, int width, char* bytes) {
  kPack[width](codes, count, bytes);
}

void UnpackBits(const char* bytes, size_t count, int width, uint8_t* codes) {
  kUnpack[width](bytes, count, codes);
}

}  // namespace kvstore_ext
