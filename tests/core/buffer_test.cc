// Where bytes lie that have come from the network.
#include "support/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace kvstore_ext {
namespace {

TEST(Buffer, IsCopiedUnlessNumbersMayLieThere) {
  const Buffer bytes = Buffer::Allocate(64);
  for (size_t i = 0; i < bytes.size; ++i) bytes.data.get()[i] = static_cast<char>(i);
  for (size_t offset = 0; offset <= 16; ++offset) {
    const Buffer range = bytes.Range(offset, 40);
    const Buffer aligned = range.Aligned();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.data.get()) % alignof(double), 0U) << offset;
    EXPECT_EQ(aligned.data == range.data, offset % alignof(double) == 0) << offset;
    ASSERT_EQ(aligned.size, range.size);
    EXPECT_EQ(std::memcmp(aligned.data.get(), range.data.get(), range.size), 0) << offset;
  }
}

TEST(Buffer, OfNothingIsLeftAsItIs) { EXPECT_TRUE(Buffer().Aligned().data == nullptr); }

}  // namespace
}  // namespace kvstore_ext
