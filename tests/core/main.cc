// Runs the core's tests, each within a limit: a wait that never ends fails, too.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace {

// Ends the process when a test takes longer; the sanitizers, and a busy machine, are no reason.
class TimeLimit : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& test) override {
    running_ = true;
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    thread_ = std::thread([this, name] {
      std::unique_lock<std::mutex> lock(mutex_);
      if (ended_.wait_for(lock, kLimit, [this] { return !running_; })) return;
      std::fprintf(stderr, "[  FAILED  ] %s has not ended within %lld s\n", name.c_str(),
                   static_cast<long long>(kLimit.count()));
      std::_Exit(1);  // other threads still use what exit would destroy
    });
  }

  void OnTestEnd(const testing::TestInfo&) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      running_ = false;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  static constexpr std::chrono::seconds kLimit{300};

  std::mutex mutex_;
  std::condition_variable ended_;
  bool running_ = false;
  std::thread thread_;
};

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  testing::UnitTest::GetInstance()->listeners().Append(new TimeLimit);  // which takes it over
  return RUN_ALL_TESTS();
}
