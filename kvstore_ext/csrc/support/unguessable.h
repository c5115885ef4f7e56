// Random numbers that nobody can guess, unlike those of random.h.
#pragma once

#include <sys/random.h>

#include <cstdint>

namespace kvstore_ext {

// Larger than 1; 0 where the system has none to give.
inline uint64_t Unguessable() {
  uint64_t number = 0;
  do {
    if (getrandom(&number, sizeof number, 0) != sizeof number) return 0;
  } while (number <= 1);
  return number;
}

}  // namespace kvstore_ext
