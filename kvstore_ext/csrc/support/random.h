// Random numbers that depend on nothing but where they are used, so that runs repeat, threads need
// no state, and any process can draw another one's numbers.
#pragma once

#include <cstdint>

namespace kvstore_ext {

// The finaliser of splitmix64 (Steele, Lea and Flood, 2014): every bit of the result depends on
// every bit of the value.
inline uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// A number for one sender, key and round, from which streams of others follow.
inline uint64_t StreamOf(uint64_t seed, uint32_t sender, uint64_t key, uint64_t round) {
  return Mix(Mix(Mix(Mix(seed) ^ sender) ^ key) ^ round);
}

// A stream of numbers for one sender, key and round: one for each element of the key, the same
// however the key is sliced.
struct Draws {
  static constexpr uint32_t kServer = 0xffffffffU;  // all servers as a sender; workers have ranks

  Draws(uint64_t seed, uint32_t sender, uint64_t key, uint64_t round) {
    const uint64_t stream = StreamOf(seed, sender, key, round);
    first_key = static_cast<uint32_t>(stream);
    second_key = static_cast<uint32_t>(stream >> 32);
  }

  // The stream of the elements from `offset` on.
  Draws From(uint64_t offset) const {
    Draws draws = *this;
    draws.first = first + static_cast<uint32_t>(offset);
    return draws;
  }

  // 24 bits for the i-th element from the first on.
  uint32_t Get(uint32_t i) const {
    uint32_t word = (first + i) ^ first_key;
    word = (word ^ (word >> 16)) * 0x7feb352dU;
    word ^= second_key;
    word = (word ^ (word >> 15)) * 0x846ca68bU;
    return (word ^ (word >> 16)) >> 8;
  }

  uint32_t first_key = 0;
  uint32_t second_key = 0;
  uint32_t first = 0;  // element; keys of more than 2^32 see their numbers again
};

}  // namespace kvstore_ext
