// Checks at intervals, and how they end.
#include "support/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace kvstore_ext {
namespace {

constexpr double kOften = 0.001;  // seconds

TEST(Watchdog, GoesOnAfterACheckThatHasThrown) {
  std::atomic<int> checks{0};
  std::promise<std::string> told;
  std::promise<void> again;
  Watchdog watchdog;
  watchdog.Start(
      kOften,
      [&] {
        if (++checks == 1) throw std::runtime_error("no way");
        if (checks == 2) again.set_value();
      },
      [&](const std::exception& error) { told.set_value(error.what()); });
  EXPECT_EQ(told.get_future().get(), "no way");
  again.get_future().get();
}

TEST(Watchdog, ChecksNothingOnceItIsStopped) {
  std::atomic<int> checks{0};
  Watchdog watchdog;
  watchdog.Start(kOften, [&] { ++checks; }, [](const std::exception&) {});
  watchdog.StopWithin(60);
  const int before = checks;
  std::this_thread::sleep_for(std::chrono::duration<double>(20 * kOften));
  EXPECT_EQ(checks, before);
}

TEST(Watchdog, ACheckThatDoesNotEndIsNotWaitedForLonger) {
  std::promise<void> begun, end;
  Watchdog watchdog;
  watchdog.Start(
      kOften,
      [&, first = true]() mutable {
        if (!std::exchange(first, false)) return;
        begun.set_value();
        end.get_future().wait();
      },
      [](const std::exception&) {});
  begun.get_future().wait();
  watchdog.StopWithin(0.01);
  end.set_value();
  watchdog.Stop();
}

}  // namespace
}  // namespace kvstore_ext
