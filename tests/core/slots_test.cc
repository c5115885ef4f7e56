// What a library calls can be changed; here this program, which calls a function of the system's.
#include "security/slots.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>

namespace kvstore_ext {
namespace {

int Invented() { return -7; }

class SlotsTest : public testing::Test {
 protected:
  Slots slots_{dlopen(nullptr, RTLD_NOW)};
  int (*original_)() = nullptr;
};

TEST_F(SlotsTest, LeadElsewhereAndBack) {
  const int parent = getppid();
  slots_.Replace("getppid", &Invented, &original_);
  EXPECT_EQ(getppid(), parent);
  slots_.Write();
  EXPECT_EQ(getppid(), -7);
  EXPECT_EQ(original_(), parent);
  int (*again)() = nullptr;
  slots_.Replace("getppid", original_, &again);
  slots_.Write();
  EXPECT_EQ(getppid(), parent);
}

TEST_F(SlotsTest, AreAllFoundOrNoneIsRewritten) {
  int (*unused)() = nullptr;
  const int parent = getppid();
  slots_.Replace("getppid", &Invented, &original_);
  slots_.Replace("vfork", &Invented, &unused);  // which this program does not call
  EXPECT_THROW(slots_.Write(), std::runtime_error);
  EXPECT_EQ(getppid(), parent);
  EXPECT_THROW(slots_.Replace("no_such_function", &Invented, &unused), std::runtime_error);
}

}  // namespace
}  // namespace kvstore_ext
