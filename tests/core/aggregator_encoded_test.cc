// The sum of a slice of which some workers' contributions are encoded.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "contributions.h"
#include "server/aggregator.h"

namespace kvstore_ext {
namespace {

// The unit, then a small integer an element, by which the unit is multiplied.
Buffer Encoded(const Numbers<float>& values, float unit) {
  Buffer bytes = Buffer::Allocate(sizeof unit + values.size());
  std::memcpy(bytes.data.get(), &unit, sizeof unit);
  for (size_t i = 0; i < values.size(); ++i) {
    bytes.data.get()[sizeof unit + i] = static_cast<char>(values[i] / unit);
  }
  return bytes;
}

Aggregator::AddEncoded AddMultiples(size_t elements) {
  return [elements](float* sum, const Buffer& bytes) {
    if (bytes.size != sizeof(float) + elements) throw std::invalid_argument("no multiples");
    const float unit = ToNumbers<float>(bytes.Range(0, sizeof(float)))[0];
    const auto* multiples = reinterpret_cast<const signed char*>(bytes.data.get()) + sizeof unit;
    for (size_t i = 0; i < elements; ++i) sum[i] += unit * static_cast<float>(multiples[i]);
  };
}

template <typename Number>
Aggregator MakeAggregator(size_t elements, int workers, bool deterministic = false) {
  return Aggregator(kTypeOf<Number>, elements, workers, deterministic, AddMultiples(elements));
}

TEST(EncodedSum, IsThatOfWhatTheBytesSay) {
  for (const bool deterministic : {false, true}) {
    Aggregator aggregator = MakeAggregator<float>(3, 3, deterministic);
    for (int round = 0; round < 2; ++round) {
      EXPECT_FALSE(aggregator.all_encoded());
      aggregator.AddBytes(2, Encoded({0.5, -1, 0}, 0.5));
      aggregator.AddBytes(0, Encoded({1, 1, 0}, 0.5));
      aggregator.AddBytes(1, Encoded({-0.5, 4, 0}, 0.5));
      EXPECT_EQ(aggregator.heard().size(), 3U);
      EXPECT_TRUE(aggregator.all_encoded());
      EXPECT_EQ(ToNumbers<float>(aggregator.Take()), (Numbers<float>{1, 4, 0}));
    }
  }
}

TEST(EncodedSum, MayHavePlainContributionsToo) {
  for (const bool plain_first : {false, true}) {
    Aggregator aggregator = MakeAggregator<float>(2, 2);
    const Buffer plain = ToBuffer<float>({0.25, 3});
    if (plain_first) aggregator.Add(1, plain, false);
    aggregator.AddBytes(0, Encoded({2, -2}, 2));
    if (!plain_first) aggregator.Add(1, plain, false);
    EXPECT_EQ(aggregator.heard().size(), 2U);
    EXPECT_FALSE(aggregator.all_encoded());
    EXPECT_EQ(ToNumbers<float>(aggregator.Take()), (Numbers<float>{2.25, 1}));
    EXPECT_EQ(ToNumbers<float>(plain), (Numbers<float>{0.25, 3}));
  }
}

TEST(EncodedSum, OfFloat16IsRoundedOnce) {
  Aggregator aggregator = MakeAggregator<Float16>(1, 3);
  for (int round = 0; round < 2; ++round) {
    aggregator.Add(0, ToBuffer<Float16>({ToFloat16(2048)}), true);
    aggregator.AddBytes(1, Encoded({1}, 1));
    aggregator.AddBytes(2, Encoded({2}, 1));
    if (round == 0) {
      EXPECT_EQ(ToDouble(ToNumbers<Float16>(aggregator.Take())[0]), 2052);  // of 2050 and 2052
    } else {
      EXPECT_EQ(ToNumbers<float>(aggregator.TakeWide()), Numbers<float>{2051});
    }
  }
}

TEST(EncodedSum, RefusesBytesThatAreNoEncoding) {
  Aggregator aggregator = MakeAggregator<float>(2, 2);
  EXPECT_THROW(aggregator.AddBytes(0, Encoded({1, 1, 1}, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace kvstore_ext
