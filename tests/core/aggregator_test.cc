// The sum of a slice over the workers, compared bit by bit with numbers added one by one.
#include "server/aggregator.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "contributions.h"

namespace kvstore_ext {
namespace {

constexpr unsigned kExamples = 200;

template <typename Number>
Aggregator MakeAggregator(size_t elements, int workers, bool deterministic = false,
                          Aggregator::AddEncoded add_encoded = nullptr) {
  return Aggregator(kTypeOf<Number>, elements, workers, deterministic, std::move(add_encoded));
}

// The sum of one array a worker, which arrive in an order.
template <typename Number>
Numbers<Number> Aggregate(const std::vector<Numbers<Number>>& arrays,
                          const std::vector<int>& arrival, bool deterministic = false) {
  Aggregator aggregator =
      MakeAggregator<Number>(arrays[0].size(), static_cast<int>(arrays.size()), deterministic);
  for (const int rank : arrival) aggregator.Add(rank, ToBuffer(arrays[rank]), true);
  EXPECT_EQ(aggregator.heard().size(), arrays.size());
  return ToNumbers<Number>(aggregator.Take());
}

template <typename Number>
class Sums : public testing::Test {};
using Types = testing::Types<float, double, Float16>;
TYPED_TEST_SUITE(Sums, Types);

TYPED_TEST(Sums, FollowTheOrderOfArrivalOrWhereDeterministicThatOfRanks) {
  for (unsigned seed = 0; seed < kExamples; ++seed) {
    RandomContributions random(seed);
    const size_t workers = 1 + random.Below(6);
    const auto arrays = random.AnyBits<TypeParam>(workers, random.Below(41));
    const std::vector<int> arrival = random.Arrival(workers);
    std::vector<Numbers<TypeParam>> as_they_arrive;
    for (const int rank : arrival) as_they_arrive.push_back(arrays[rank]);
    EXPECT_TRUE(SameNumbers(Aggregate(arrays, arrival), AddedOneByOne(as_they_arrive)))
        << "seed " << seed;
    EXPECT_TRUE(SameNumbers(Aggregate(arrays, arrival, true), AddedOneByOne(arrays)))
        << "deterministic, seed " << seed;
  }
}

TYPED_TEST(Sums, OfGradientsOfManyMagnitudesNeverDifferWhereDeterministic) {
  for (unsigned seed = 0; seed < kExamples; ++seed) {
    RandomContributions random(seed);
    const auto arrays = random.Gradients<TypeParam>(5, 200);
    const auto in_order = Aggregate(arrays, {0, 1, 2, 3, 4}, true);
    const auto found = Aggregate(arrays, random.Arrival(5), true);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), in_order.begin(), in_order.end(),
                           SameBits<TypeParam>))
        << "seed " << seed;
  }
}

TYPED_TEST(Sums, OfOneWorkerKeepTheVeryBits) {
  const auto arrays = RandomContributions(0).AnyBits<TypeParam>(1, 1000);
  const auto found = Aggregate(arrays, {0});
  EXPECT_TRUE(std::equal(found.begin(), found.end(), arrays[0].begin(), arrays[0].end(),
                         SameBits<TypeParam>));
}

TYPED_TEST(Sums, LeaveWhatIsNotDisposableAsItWas) {
  const auto arrays = RandomContributions(0).Gradients<TypeParam>(2, 100);
  Aggregator aggregator = MakeAggregator<TypeParam>(100, 2);
  const Buffer first = ToBuffer(arrays[0]), second = ToBuffer(arrays[1]);
  aggregator.Add(0, first, false);
  aggregator.Add(1, second, false);
  EXPECT_TRUE(SameNumbers(ToNumbers<TypeParam>(aggregator.Take()), AddedOneByOne(arrays)));
  EXPECT_TRUE(SameNumbers(ToNumbers<TypeParam>(first), arrays[0]));
  EXPECT_TRUE(SameNumbers(ToNumbers<TypeParam>(second), arrays[1]));
}

TYPED_TEST(Sums, AreNotRoundedWhereTakenWide) {
  using Wide = typename Sum<TypeParam>::Wide;
  for (const size_t workers : {1, 2, 4}) {
    const auto arrays = RandomContributions(workers).Gradients<TypeParam>(workers, 100);
    Aggregator aggregator = MakeAggregator<TypeParam>(100, static_cast<int>(workers));
    std::vector<Numbers<Wide>> wide(workers);
    for (size_t rank = 0; rank < workers; ++rank) {
      aggregator.Add(static_cast<int>(rank), ToBuffer(arrays[rank]), true);
      for (const TypeParam number : arrays[rank])
        wide[rank].push_back(Sum<TypeParam>::Widen(number));
    }
    EXPECT_TRUE(SameNumbers(ToNumbers<Wide>(aggregator.TakeWide()), AddedOneByOne(wide)))
        << workers << " workers";
  }
}

Numbers<Float16> EveryFloat16() {
  Numbers<Float16> every(1 << 16);
  for (size_t i = 0; i < every.size(); ++i) every[i].bits = static_cast<uint16_t>(i);
  return every;
}

TEST(Aggregator, EveryFloat16SurvivesAndIsRoundedToTheNearest) {
  const Numbers<Float16> every = EveryFloat16();
  const Numbers<Float16> nothing(every.size()), tiny(every.size(), Float16{1});
  Numbers<Float16> reversed(every.rbegin(), every.rend()), shuffled = every;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(0));
  for (const auto& other : {nothing, tiny, every, reversed, shuffled}) {
    EXPECT_TRUE(SameNumbers(Aggregate<Float16>({every, other}, {0, 1}),
                            AddedOneByOne<Float16>({every, other})));
  }
}

TEST(Aggregator, OneWorkersFloat16KeepTheirVeryBits) {
  const Numbers<Float16> every = EveryFloat16();
  const Numbers<Float16> found = Aggregate<Float16>({every}, {0});
  ASSERT_EQ(found.size(), every.size());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), every.begin(), SameBits<Float16>));
}

double SumOfFloat16(const std::vector<double>& values) {
  std::vector<Numbers<Float16>> arrays;
  for (const double value : values) arrays.push_back({ToFloat16(value)});
  return ToDouble(Aggregate(arrays, {0, 1, 2})[0]);
}

TEST(Aggregator, Float16IsSummedInFloat32) {
  EXPECT_EQ(SumOfFloat16({2048, 1, 1}), 2050);             // 2048 + 1 is 2048 in float16
  EXPECT_EQ(SumOfFloat16({60000, 60000, -60000}), 60000);  // 120000 is infinite in float16
}

TEST(Aggregator, CountsSendersAndNamesWhoIsMissing) {
  for (unsigned seed = 0; seed < kExamples; ++seed) {
    RandomContributions random(seed);
    const auto workers = static_cast<int>(2 + random.Below(5));
    Aggregator aggregator = MakeAggregator<float>(1, workers, random.Below(2) == 0);
    const std::vector<int> arrival = random.Arrival(workers);
    for (int round = 0; round < 2; ++round) {
      std::set<int> heard;
      for (const int rank : arrival) {
        EXPECT_EQ(aggregator.heard(), heard);
        aggregator.Add(rank, ToBuffer<float>({static_cast<float>(rank)}), true);
        heard.insert(rank);
      }
      EXPECT_EQ(aggregator.heard(), heard);
      const float sum = static_cast<float>(workers * (workers - 1)) / 2;
      EXPECT_EQ(ToNumbers<float>(aggregator.Take()), Numbers<float>{sum});
    }
  }
}

TEST(Aggregator, WhoHasNothingToAddCounts) {
  Aggregator aggregator = MakeAggregator<float>(2, 3);
  aggregator.AddNothing(2);
  aggregator.Add(0, ToBuffer<float>({1, 2}), true);
  EXPECT_EQ(aggregator.heard(), (std::set<int>{0, 2}));
  aggregator.AddNothing(1);
  EXPECT_EQ(aggregator.heard(), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(ToNumbers<float>(aggregator.Take()), (Numbers<float>{1, 2}));
}

TEST(Aggregator, ARoundThatIsNotFiniteIsForgottenWhenDropped) {
  for (const bool deterministic : {false, true}) {
    Aggregator aggregator = MakeAggregator<float>(1, 3, deterministic);
    aggregator.Add(2, ToBuffer<float>({100}), true);
    EXPECT_FALSE(aggregator.non_finite());
    aggregator.AddNonFinite(1);
    aggregator.Add(0, ToBuffer<float>({1000}), true);
    EXPECT_TRUE(aggregator.non_finite());
    EXPECT_EQ(aggregator.heard(), (std::set<int>{0, 1, 2}));
    aggregator.Drop();
    EXPECT_FALSE(aggregator.non_finite());
    EXPECT_EQ(aggregator.held_bytes(), 0U);
    EXPECT_EQ(aggregator.heard(), std::set<int>());
    for (const int rank : {1, 0, 2}) aggregator.Add(rank, ToBuffer<float>({1}), true);
    EXPECT_EQ(ToNumbers<float>(aggregator.Take()), Numbers<float>{3});
  }
}

TEST(Aggregator, TellsWhatItHolds) {
  Aggregator aggregator = MakeAggregator<float>(10, 3, true);
  EXPECT_EQ(aggregator.held_bytes(), 0U);
  aggregator.Add(2, ToBuffer(Numbers<float>(10)), true);  // waits for the others
  EXPECT_EQ(aggregator.held_bytes(), 40U);
  aggregator.Add(0, ToBuffer(Numbers<float>(10)), true);
  EXPECT_EQ(aggregator.held_bytes(), 80U);
  aggregator.Add(1, ToBuffer(Numbers<float>(10)), true);
  EXPECT_EQ(aggregator.held_bytes(), 40U);
  aggregator.Take();
  EXPECT_EQ(aggregator.held_bytes(), 0U);
}

}  // namespace
}  // namespace kvstore_ext
