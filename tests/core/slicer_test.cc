// How keys are cut into slices and given to servers.
#include "keys/slicer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>

#include "layer_sizes.h"

namespace kvstore_ext {
namespace {

constexpr int kTensors = 500;
constexpr uint64_t kLeastSharedBytes = 32768;
constexpr uint64_t kLeastEvenBytes = 2048;

// SliceKey's arguments.
struct Tensor {
  uint64_t key, elements;
  double element_bytes;
  size_t slice_bytes;
  int servers;
  uint64_t alignment = 1;

  std::vector<Slice> Cut() const {
    return SliceKey(key, elements, element_bytes, slice_bytes, servers, alignment);
  }
};

void PrintTo(const Tensor& tensor, std::ostream* out) {
  *out << "key " << tensor.key << ", " << tensor.elements << " elements of " << tensor.element_bytes
       << " bytes, slices of " << tensor.slice_bytes << ", " << tensor.servers
       << " servers, alignment " << tensor.alignment;
}

uint64_t DivideUp(uint64_t number, uint64_t by) { return (number + by - 1) / by; }

bool IsShorter(const Slice& one, const Slice& other) { return one.length < other.length; }

uint64_t Shortest(const std::vector<Slice>& slices) {
  return std::min_element(slices.begin(), slices.end(), IsShorter)->length;
}

uint64_t Longest(const std::vector<Slice>& slices) {
  return std::max_element(slices.begin(), slices.end(), IsShorter)->length;
}

// A tensor that gives at most about 2,000 slices; each kind of border comes now and then.
Tensor RandomTensor(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  const uint64_t keys[] = {0, 1, random(), std::numeric_limits<uint64_t>::max()};
  const uint64_t element_bytes = 2U << below(3);
  const uint64_t sizes[] = {8, 64, 200000, element_bytes, element_bytes + below(1U << 20)};
  const uint64_t slice_bytes = sizes[below(5)];
  const uint64_t most = 2000 * (slice_bytes / element_bytes);
  const uint64_t elements[] = {0, 1, most, below(most + 1), below(most / 100 + 1)};
  return {keys[below(4)], elements[below(5)], static_cast<double>(element_bytes), slice_bytes,
          1 + static_cast<int>(below(64))};
}

// As compressed keys are cut, in elements of a few bits.
Tensor RandomAlignedTensor(unsigned seed) {
  Tensor tensor = RandomTensor(seed);
  tensor.element_bytes /= 16;
  tensor.alignment = uint64_t{1} << seed % 17;
  return tensor;
}

template <typename Check>
void OnExamples(Tensor (*random)(unsigned), Check check) {
  for (unsigned seed = 0; seed < kTensors && !testing::Test::HasFailure(); ++seed) {
    const Tensor tensor = random(seed);
    SCOPED_TRACE(testing::PrintToString(tensor));
    check(tensor, tensor.Cut());
  }
}

void ExpectEveryElementOnce(const Tensor& tensor, const std::vector<Slice>& slices) {
  uint64_t end = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i].index, i);
    EXPECT_EQ(slices[i].offset, end);
    end += slices[i].length;
  }
  EXPECT_EQ(end, tensor.elements);
}

TEST(Slicer, EveryElementIsInExactlyOneSliceInOrder) {
  OnExamples(RandomTensor, ExpectEveryElementOnce);
  OnExamples(RandomAlignedTensor, ExpectEveryElementOnce);
}

TEST(Slicer, NoSliceIsOverTheLimitAndLengthsDifferByAtMostOne) {
  OnExamples(RandomTensor, [](const Tensor& tensor, const std::vector<Slice>& slices) {
    EXPECT_LE(Longest(slices) * tensor.element_bytes, tensor.slice_bytes);
    EXPECT_LE(Longest(slices) - Shortest(slices), 1U);
  });
}

TEST(Slicer, ElementsOfFewBitsFitAMessageAsTheyAre) {
  const Tensor tensor = {5, uint64_t{1} << 33, 1.0 / 32, 1 << 30, 2, 64};
  ExpectEveryElementOnce(tensor, tensor.Cut());
  EXPECT_LE(Longest(tensor.Cut()) * sizeof(double), uint64_t{1} << 30);
}

TEST(Slicer, SlicesBeginAtMultiplesOfTheAlignmentAndAreNoLongerThanTheyMay) {
  OnExamples(RandomAlignedTensor, [](const Tensor& tensor, const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) EXPECT_EQ(slice.offset % tensor.alignment, 0U);
    if (Longest(slices) > tensor.alignment) {
      EXPECT_LE(Longest(slices) * tensor.element_bytes, tensor.slice_bytes);
    }
    // The last one has what is left, so it differs by less than one more unit.
    std::vector<Slice> whole(slices.begin(), slices.end() - 1);
    if (whole.empty()) return;
    EXPECT_LE(Longest(whole) - Shortest(whole), tensor.alignment);
    EXPECT_GT(slices.back().length + 2 * tensor.alignment, Longest(whole));
  });
}

TEST(Slicer, NoSliceIsEmptyUnlessTheKeyIs) {
  const auto check = [](const Tensor& tensor, const std::vector<Slice>& slices) {
    EXPECT_TRUE(tensor.elements == 0 || Shortest(slices) > 0);
  };
  OnExamples(RandomTensor, check);
  OnExamples(RandomAlignedTensor, check);
  EXPECT_EQ(SliceKey(1, 150000, 1, 200000, 4, 50000).size(), 1U) << "three units, four servers";
}

TEST(Slicer, ThereAreAsFewSlicesAsPossibleOrEquallyManyForEachServer) {
  OnExamples(RandomTensor, [](const Tensor& tensor, const std::vector<Slice>& slices) {
    const auto most = static_cast<uint64_t>(tensor.slice_bytes / tensor.element_bytes);
    const uint64_t fewest = std::max<uint64_t>(1, DivideUp(tensor.elements, most));
    if (slices.size() == fewest) return;
    EXPECT_EQ(slices.size(), DivideUp(fewest, tensor.servers) * tensor.servers);
    const double bytes = tensor.elements * tensor.element_bytes;
    EXPECT_GE(bytes, kLeastSharedBytes) << "so small keys cost more";
    EXPECT_GE(bytes, slices.size() * kLeastEvenBytes) << "so small ones cost more";
  });
}

TEST(Slicer, KeysAreSharedByAllServersFromTheSameSizeOn) {
  for (const int servers : {2, 3, 4, 8, 16}) {
    const Tensor shared = {5, 8192, 4, 200000, servers};
    EXPECT_EQ(shared.Cut().size(), static_cast<size_t>(servers)) << servers << " servers";
    const Tensor smaller = {5, 8191, 4, 200000, servers};
    EXPECT_EQ(smaller.Cut().size(), 1U) << servers << " servers";
  }
}

TEST(Slicer, NoKeyIsCutToSharesOfLessThanTwoKibibytes) {
  const Tensor shared = {5, 16384, 4, 200000, 32};
  EXPECT_EQ(shared.Cut().size(), 32U);
  const Tensor smaller = {5, 16383, 4, 200000, 32};
  EXPECT_EQ(smaller.Cut().size(), 1U);
}

TEST(Slicer, EveryServerGetsEquallyManySlicesWhereTheyAreLargeEnough) {
  for (const int servers : {1, 2, 3, 4, 7}) {
    const Tensor tensor = {5, 1000000, 4, 200000, servers};
    EXPECT_EQ(tensor.Cut().size() % servers, 0U) << servers << " servers";
  }
}

TEST(Slicer, ConsecutiveSlicesGoToConsecutiveServers) {
  OnExamples(RandomTensor, [](const Tensor& tensor, const std::vector<Slice>& slices) {
    EXPECT_TRUE(0 <= slices[0].server && slices[0].server < tensor.servers);
    for (size_t i = 1; i < slices.size(); ++i) {
      EXPECT_EQ(slices[i].server, (slices[i - 1].server + 1) % tensor.servers);
    }
  });
}

TEST(Slicer, PlacementDoesNotDependOnWhatWasSlicedBefore) {
  const auto placed = [](unsigned seed) {
    std::vector<std::tuple<uint32_t, uint64_t, uint64_t, int>> slices;
    for (const Slice& slice : RandomTensor(seed).Cut()) {
      slices.emplace_back(slice.index, slice.offset, slice.length, slice.server);
    }
    return slices;
  };
  std::vector<decltype(placed(0))> forwards;
  for (unsigned seed = 0; seed < 50; ++seed) forwards.push_back(placed(seed));
  for (unsigned seed = 50; seed-- > 0;) EXPECT_EQ(placed(seed), forwards[seed]);
}

TEST(Slicer, AKeyWithoutElementsHasOneEmptySlice) {
  for (unsigned seed = 0; seed < kTensors; ++seed) {
    Tensor tensor = RandomTensor(seed);
    tensor.elements = 0;
    const std::vector<Slice> slices = tensor.Cut();
    ASSERT_EQ(slices.size(), 1U);
    const auto [index, offset, length, server] = slices[0];
    EXPECT_EQ(std::make_tuple(index, offset, length), std::make_tuple(0U, 0U, 0U));
    EXPECT_TRUE(0 <= server && server < tensor.servers);
  }
}

TEST(Slicer, SizesAre64Bit) {
  const std::vector<Slice> slices = SliceKey(0, uint64_t{3} << 40, 8, 1 << 30, 7);
  EXPECT_EQ(slices.size(), 24577U) << "as many for each server";
  EXPECT_EQ(slices.back().offset + slices.back().length, uint64_t{3} << 40);
}

using Load = std::map<int, double>;  // bytes by server

// The busiest server's, compared with an equal share.
double Excess(const Load& load, int servers) {
  double most = 0, all = 0;
  for (const auto& [server, bytes] : load) {
    most = std::max(most, bytes);
    all += bytes;
  }
  return most / (all / servers);
}

TEST(Slicer, ServersGetAlmostEquallyManyBytesOfAModel) {
  const auto all = [](const std::vector<uint64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  };
  EXPECT_EQ(all(ResNet50()), 25557032U);
  EXPECT_EQ(all(Vgg19()), 143667240U);
  for (const auto& sizes : {ResNet50(), Vgg19()}) {
    for (const int servers : {2, 3, 4, 8, 16}) {
      Load load;
      for (uint64_t key = 0; key < sizes.size(); ++key) {
        for (const Slice& slice : SliceKey(key, sizes[key], 4, 200000, servers)) {
          load[slice.server] += 4.0 * static_cast<double>(slice.length);
        }
      }
      EXPECT_LE(Excess(load, servers), 1.02) << servers << " servers";
    }
  }
}

TEST(Slicer, APatternOfSmallLayersAsLongAsTheNumberOfServersIsSpreadToo) {
  for (const int servers : {2, 3, 4}) {
    Load load;
    for (int i = 0; i < 300; ++i) {
      const std::vector<Slice> slices = SliceKey(i * servers, 4000, 4, 200000, servers);
      ASSERT_EQ(slices.size(), 1U);
      load[slices[0].server] += static_cast<double>(slices[0].length);
    }
    EXPECT_LT(Excess(load, servers), 1.3) << servers << " servers";
  }
}

TEST(Slicer, BadArgumentsAreRefusedWithTheirValues) {
  const Tensor bad[] = {{1, 10, 0, 8, 1}, {1, 10, 4, 3, 1},  {1, 10, 4, 0, 1},
                        {1, 10, 4, 8, 0}, {1, 10, -4, 8, 1}, {1, 10, 4, 8, 1, 0}};
  for (const Tensor& tensor : bad) {
    SCOPED_TRACE(testing::PrintToString(tensor));
    try {
      tensor.Cut();
      ADD_FAILURE() << "not refused";
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      const std::string values[] = {std::to_string(static_cast<int>(tensor.element_bytes)),
                                    std::to_string(tensor.slice_bytes),
                                    std::to_string(tensor.servers)};
      EXPECT_NE(message.find(values[0] + " bytes into slices of " + values[1]), std::string::npos);
      EXPECT_NE(message.find(" for " + values[2] + " servers"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace kvstore_ext
