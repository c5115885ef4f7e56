// A piece of memory that can travel: to the network, to an optimizer, or to a codec, without a
// copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace kvstore_ext {

// Laid out as ps-lite's SArray<char> (size, capacity, pointer), so that a Buffer enters a ps-lite
// message as it is. Copies share the bytes; the last one frees them.
struct Buffer {
  size_t size = 0;  // bytes
  size_t capacity = 0;
  std::shared_ptr<char> data;

  static Buffer Allocate(size_t bytes) {
    // Cache-line alignment keeps vector kernels, MXNet's included, on their fast paths. Not a byte
    // more than asked for, so that sanitizers see what is written behind the last one.
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, std::max<size_t>(1, bytes)) != 0) throw std::bad_alloc();
    return {bytes, bytes, std::shared_ptr<char>(static_cast<char*>(memory), std::free)};
  }

  // A range of these bytes, which it keeps alive as any copy does.
  Buffer Range(size_t offset, size_t bytes) const {
    return {bytes, bytes, std::shared_ptr<char>(data, data.get() + offset)};
  }

  // The same bytes in memory of their own.
  Buffer Copy() const {
    Buffer copy = Allocate(size);
    if (size > 0) std::memcpy(copy.data.get(), data.get(), size);
    return copy;
  }

  // The same bytes where numbers of any type can be read: there, or in memory of their own.
  Buffer Aligned() const {
    return reinterpret_cast<uintptr_t>(data.get()) % alignof(double) == 0 ? *this : Copy();
  }

  // Memory that somebody else keeps alive until the message has been received, and that has no
  // owner here.
  static Buffer Borrow(char* memory, size_t bytes) {
    return {bytes, bytes, std::shared_ptr<char>(std::shared_ptr<char>(), memory)};
  }
  bool is_borrowed() const { return data != nullptr && data.use_count() == 0; }
};

}  // namespace kvstore_ext
