// How much a peer may be sent before it acknowledges, on simulated links.
#include "transport/window.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <ostream>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

#include "simulated_link.h"

namespace kvstore_ext {

void PrintTo(const Window& window, std::ostream* out) {
  *out << "{" << window.part_bytes << ", " << window.bytes << "}";
}

void PrintTo(const LinkKind& kind, std::ostream* out) { *out << kind.name; }

namespace {

constexpr size_t kSlice = 200000;
constexpr size_t kPart = 200000;

const LinkKind kNear = {"Near", 50e6, 2e-4};
const LinkKind kFast = {"Fast", 1.25e9, 5e-4};
const LinkKind kLong = {"Long", 125e6, 2e-2};

// What a backward pass sends: layers of a few slices, and perhaps small ones such as biases.
std::vector<size_t> Layers(bool small_too) {
  const size_t small_ones[] = {2000, 500, 4000};
  std::vector<size_t> layers(100, kSlice);
  for (size_t i = 0; small_too && i < layers.size(); i += 10) {
    layers[i + 2] = small_ones[0];
    layers[i + 4] = small_ones[1];
    layers[i + 9] = small_ones[2];
  }
  return layers;
}

void ExpectBounded(const SimulatedLink& link) {
  EXPECT_LE(link.advice().bytes, 2 * link.BytesOnTheWay() + 4 * kSlice);
}

void Ignore(const Window&) {}

TEST(Window, TravelsAsText) {
  const Window window = {12345, uint64_t{1} << 40};
  EXPECT_EQ(Window::Unpack(window.Pack()), window);
}

TEST(Window, RefusesATextThatIsNone) {
  const std::string text = Window().Pack();
  EXPECT_THROW(Window::Unpack(""), std::invalid_argument);
  EXPECT_THROW(Window::Unpack(text + "x"), std::invalid_argument);
  EXPECT_THROW(Window::Unpack(text.substr(1)), std::invalid_argument);
  EXPECT_THROW(Window::Unpack(Window{0, 1}.Pack()), std::invalid_argument);
}

TEST(WindowEstimator, AdmitsFourPartsBeforeAnythingIsKnown) {
  const Window four_parts = {kPart, 4 * kPart};
  for (const size_t slice_bytes : {kPart, 2 * kPart, 8 * kPart}) {
    EXPECT_EQ(WindowEstimator(slice_bytes, 1, Ignore).advice(), four_parts);
    EXPECT_EQ(WindowEstimator::Initial(slice_bytes, 0), four_parts);
  }
}

// An estimator of four links, one of them to a peer that is left out, and how training goes on.
class Iterating : public testing::Test {
 protected:
  Iterating() {
    estimator_.LeaveOut(3);
    estimator_.Iterated(1, 0, 0);
  }

  // After iterations of which training waits for such a share, in which so many windows of four
  // parts on each link travel, and others come back.
  size_t PartsAfter(double waits, double windows, double back = 0, int iterations = 5) {
    for (int i = 0; i < iterations; ++i) Iterate(waits, windows, back);
    EXPECT_EQ(estimator_.advice().part_bytes, kPart);
    return estimator_.advice().bytes / kPart;
  }

  void Iterate(double waits, double windows, double back = 0) {
    sent_ += windows * 3 * 4 * kPart;
    received_ += back * 3 * 4 * kPart;
    estimator_.Iterated(waits, sent_, received_);
  }

  double sent_ = 0, received_ = 0;
  int changes_ = 0;
  WindowEstimator estimator_{kSlice, 4, [this](const Window&) { ++changes_; }};
};

TEST_F(Iterating, AdmitsTwoPartsWhereLittleTravelsWhileTrainingWaits) {
  EXPECT_EQ(PartsAfter(1, 3), 4U);
  EXPECT_EQ(changes_, 0);
  EXPECT_EQ(PartsAfter(0.1, 10), 2U);
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(PartsAfter(0, 1000), 2U) << "all hides behind computing";
  EXPECT_EQ(PartsAfter(0.5, 10), 4U);
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(PartsAfter(0.5, 2), 2U) << "training waits as long, but little travels";
}

TEST_F(Iterating, GoesByTheWayThatCarriesMore) {
  EXPECT_EQ(PartsAfter(0.5, 0.1, 10), 4U);
  EXPECT_EQ(PartsAfter(0.5, 0.1, 0.1), 2U);
  EXPECT_EQ(PartsAfter(0.5, 10, 0.1), 4U);
}

TEST_F(Iterating, StaysWithWhatItHasWhereNeitherIsMuchBetter) {
  for (const double windows : {1.5, 1.8, 1.6}) EXPECT_EQ(PartsAfter(1, windows), 4U) << windows;
  EXPECT_EQ(PartsAfter(1, 1.3), 2U);
  for (const double windows : {1.5, 1.8, 1.6}) EXPECT_EQ(PartsAfter(1, windows), 2U) << windows;
  EXPECT_EQ(PartsAfter(1, 2.0), 4U);
}

TEST_F(Iterating, IsNotTakenInByAnIterationThatWaitsForSomethingElse) {
  PartsAfter(0.1, 10);
  changes_ = 0;
  for (int epoch = 0; epoch < 10; ++epoch) {
    EXPECT_EQ(PartsAfter(0.99, 10, 0, 1), 2U);
    EXPECT_EQ(PartsAfter(0.1, 10, 0, 4), 2U);
  }
  EXPECT_EQ(changes_, 0);
}

TEST_F(Iterating, IsNotTakenInByWhatIsAddedUpBetweenGradients) {
  PartsAfter(0.5, 10);
  for (int step = 0; step < 10; ++step) {
    EXPECT_EQ(PartsAfter(1, 0, 0, 1), 4U);
    EXPECT_EQ(PartsAfter(0.5, 10, 0, 1), 4U);
  }
  EXPECT_EQ(changes_, 0);
}

TEST_F(Iterating, ChangesByASinglePartToo) {
  for (const size_t slice_bytes : {300000U, 300001U}) {
    WindowEstimator estimator(slice_bytes, 1, Ignore);
    EXPECT_EQ(estimator.advice().bytes / slice_bytes, 3U);
    for (int i = 0; i < 3; ++i) estimator.Iterated(0, 1e6 * i, 0);
    EXPECT_EQ(estimator.advice().bytes / slice_bytes, 2U);
  }
}

TEST_F(Iterating, AdmitsWhatALongLinkHoldsHoweverLittleTrainingWaits) {
  WindowEstimator estimator(kSlice, 1, Ignore);
  for (int i = 0; i < 400; ++i) {
    estimator.RoundTrip(0, 0.1);
    estimator.Acknowledged(0, 100000, 1 + i * 0.01);
  }
  const Window holds = estimator.advice();
  EXPECT_GT(holds.bytes, 4 * kPart);
  for (int i = 0; i < 3; ++i) estimator.Iterated(0, 1e6 * i, 0);
  EXPECT_EQ(estimator.advice(), holds);
}

TEST(WindowEstimator, StaysAsItIsWithoutAPeerOnAnotherHost) {
  WindowEstimator estimator(kSlice, 1, Ignore);
  estimator.LeaveOut(0);
  for (int i = 0; i < 3; ++i) estimator.Iterated(0.5, 0, 0);
  EXPECT_EQ(estimator.advice(), WindowEstimator::Initial(kSlice, 0));
}

TEST(WindowEstimator, LearnsNothingFromPeersThatAreLeftOut) {
  // Near ones are left out, which are most of them: their round trips would be taken for all.
  WindowEstimator alone(kSlice, 1, Ignore), beside(kSlice, 3, Ignore);
  WindowEstimator none(kSlice, 1, Ignore);
  for (const int near : {0, 1}) beside.LeaveOut(near);
  none.LeaveOut(0);
  for (int i = 0; i < 400; ++i) {
    const double now = 1 + i * 0.001;
    alone.RoundTrip(0, 0.02);
    none.RoundTrip(0, 0.02);
    beside.RoundTrip(2, 0.02);
    alone.Acknowledged(0, 100000, now);
    none.Acknowledged(0, 100000, now);
    beside.Acknowledged(2, 100000, now);
    for (const int near : {0, 1}) {
      beside.RoundTrip(near, 1e-6);
      beside.Acknowledged(near, 100000, now);
    }
  }
  EXPECT_GT(alone.advice().bytes, 4 * kPart);
  EXPECT_EQ(beside.advice(), alone.advice());
  EXPECT_EQ(none.advice(), WindowEstimator::Initial(kSlice, 0));
}

TEST(WindowEstimator, KeepsAFixedWindowAndSlicesWhole) {
  const Window fixed = {kSlice, 12345};
  EXPECT_EQ(WindowEstimator::Initial(kSlice, 12345), fixed);
}

TEST(WindowEstimator, LeavesSlicesWholeAndAdmitsAsManyAsTakeAsLongAsFourParts) {
  for (const size_t slice_bytes : {size_t{8}, kPart / 3, kPart, 2 * kPart - 1}) {
    const Window window = WindowEstimator(slice_bytes, 1, Ignore).advice();
    EXPECT_EQ(window.part_bytes, slice_bytes);
    EXPECT_GE(window.bytes, std::max(4 * kPart, 2 * slice_bytes));
    EXPECT_LT(window.bytes, 4 * kPart + slice_bytes);
    EXPECT_EQ(window.bytes % slice_bytes, 0U);
  }
}

class OnLayers : public testing::TestWithParam<bool> {};

TEST_P(OnLayers, ASlowNearLinkGetsFourParts) {
  SimulatedLink link(kNear, kSlice);
  link.Train(Layers(GetParam()));
  EXPECT_EQ(link.advice().bytes, 4 * kPart);
  EXPECT_GT(link.Busy(), 0.98);
}

TEST_P(OnLayers, AFastOrLongLinkIsKeptBusyWithAboutWhatItHolds) {
  for (const LinkKind& kind : {kFast, kLong}) {
    SCOPED_TRACE(kind.name);
    SimulatedLink link(kind, kSlice);
    link.Train(Layers(GetParam()));
    EXPECT_GT(link.Busy(), 0.85);
    ExpectBounded(link);
  }
}

INSTANTIATE_TEST_SUITE_P(SmallToo, OnLayers, testing::Bool());

TEST(WindowEstimator, KeepsAnyLinkOfModerateLengthBusyWithinBounds) {
  std::vector<LinkKind> kinds = {{"slow and near", 1e7, 1e-5},
                                 {"fast and near", 2e9, 1e-5},
                                 {"slow and long", 1e7, 5e-2},
                                 {"fast and long", 2e9, 3.9e-3}};
  std::mt19937 random(0);
  const auto between = [&random](double least, double most) {
    return std::exp(std::uniform_real_distribution(std::log(least), std::log(most))(random));
  };
  while (kinds.size() < 100) {
    const LinkKind kind = {"random", between(1e7, 2e9), between(1e-5, 5e-2)};
    if (kind.bandwidth * kind.round_trip < 40 * kSlice) kinds.push_back(kind);
  }
  for (const LinkKind& kind : kinds) {
    SCOPED_TRACE(testing::Message() << kind.bandwidth << " bytes/s, " << kind.round_trip << " s");
    SimulatedLink link(kind, kSlice);
    link.Train(Layers(true));
    EXPECT_GT(link.Busy(), 0.8);
    ExpectBounded(link);
  }
}

TEST(WindowEstimator, BoundsTheWindowOnTheLongestLinks) {
  SimulatedLink link({"longest", 1.25e10, 1.0}, kSlice);
  link.Train(std::vector<size_t>(1000, kSlice));
  EXPECT_LE(link.advice().bytes, 65 * kSlice);
}

class OnAChange : public testing::TestWithParam<std::tuple<LinkKind, LinkKind>> {};

TEST_P(OnAChange, ItAdapts) {
  const auto& [before, after] = GetParam();
  SimulatedLink link(before, kSlice);
  link.Train(Layers(true));
  link.Become(after);
  link.Train(Layers(true), 2000);
  EXPECT_GT(link.Busy(), 0.75);
  ExpectBounded(link);
}

INSTANTIATE_TEST_SUITE_P(OfTheLink, OnAChange,
                         testing::Values(std::tuple(kFast, kNear), std::tuple(kLong, kNear),
                                         std::tuple(kNear, kLong)));

TEST(WindowEstimator, Settles) {
  for (const LinkKind& kind : {kNear, kFast, kLong}) {
    SCOPED_TRACE(kind.name);
    SimulatedLink link(kind, kSlice);
    link.Train(Layers(true));
    link.changes().clear();
    link.Train(Layers(true));
    EXPECT_LE(link.changes().size(), 3U);
  }
}

TEST(WindowEstimator, DoesNotGoToAndFroBetweenTwoNumbersOfParts) {
  for (int i = 0; i < 100; ++i) {
    LinkKind kind = {"of a few parts", 125e6, 6e-3 + i * 4e-5};
    SCOPED_TRACE(kind.round_trip);
    SimulatedLink link(kind, kSlice);
    link.Train(Layers(false), 5);
    link.changes().clear();
    for (int iteration = 0; iteration < 10; ++iteration) {
      kind.bandwidth = iteration % 2 == 0 ? 125e6 : 1.01 * 125e6;
      link.Become(kind);
      link.Train(Layers(false), 1);
    }
    EXPECT_LE(link.changes().size(), 3U);
  }
}

TEST(WindowEstimator, TellsChangesAndNothingElse) {
  SimulatedLink link(kLong, kSlice);
  link.Train(Layers(true));
  const std::vector<Window>& changes = link.changes();
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back(), link.advice());
  for (size_t i = 1; i < changes.size(); ++i) EXPECT_FALSE(changes[i - 1] == changes[i]);
}

// Of four links, of which the last is to a peer that is so far and takes so much at a time.
Window AdviceBeside(double seconds, size_t bytes, double seconds_of_others) {
  WindowEstimator estimator(kSlice, 4, Ignore);
  for (int peer = 0; peer < 4; ++peer) {
    estimator.RoundTrip(peer, peer == 3 ? seconds : seconds_of_others);
  }
  for (int step = 1; step < 1000; ++step) {
    for (int peer = 0; peer < 4; ++peer) {
      estimator.Acknowledged(peer, peer == 3 ? bytes : kPart, step * 1e-3);
    }
  }
  return estimator.advice();
}

TEST(WindowEstimator, GivesSlowNearLinksBesideOthersFourParts) {
  const Window four_parts = {kPart, 4 * kPart};
  EXPECT_EQ(AdviceBeside(kNear.round_trip, kPart, kNear.round_trip), four_parts);
}

TEST(WindowEstimator, DoesNotCountAPeerOnTheSameMachine) {
  for (const double others : {2e-4, 2e-2}) {
    EXPECT_EQ(AdviceBeside(others, kPart, others), AdviceBeside(1e-6, 10 * kPart, others));
  }
}

TEST(WindowEstimator, TellsManyThreadsChangesOneAtATime) {
  std::atomic<int> telling{0}, told{0};
  std::atomic<bool> overlapped{false};
  WindowEstimator estimator(kSlice, 1, [&](const Window&) {
    if (++telling > 1) overlapped = true;
    std::this_thread::yield();
    --telling;
    ++told;
  });
  std::atomic<int> milliseconds{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int step = 1; step < 1000; ++step) {
        estimator.RoundTrip(0, 1e-6 * step * step);
        estimator.Acknowledged(0, kPart * step, ++milliseconds * 1e-3);
        const Window advice = estimator.advice();
        EXPECT_GE(advice.bytes, advice.part_bytes);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(told, 0);
  EXPECT_FALSE(overlapped);
}

}  // namespace
}  // namespace kvstore_ext
