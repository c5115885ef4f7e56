// What is said on standard error, or dropped where nobody reads it.
#include "support/say.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <unistd.h>

#include <string>

namespace kvstore_ext {
namespace {

// Standard error is a pipe meanwhile.
class Saying : public testing::Test {
 protected:
  Saying() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_), 0);
    dup2(ends_[1], STDERR_FILENO);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }

  ~Saying() override {
    dup2(before_, STDERR_FILENO);
    for (const int descriptor : {before_, ends_[0], ends_[1]}) close(descriptor);
  }

  std::string Heard() {
    std::string heard;
    char piece[4096];
    for (ssize_t count; (count = read(ends_[0], piece, sizeof piece)) > 0;) {
      heard.append(piece, count);
    }
    return heard;
  }

  // Until it would have to wait.
  void Fill() {
    const std::string much(1 << 20, 'x');
    const int flags = fcntl(ends_[1], F_GETFL);
    fcntl(ends_[1], F_SETFL, flags | O_NONBLOCK);
    for (size_t size = much.size(); size > 0;) {
      if (write(ends_[1], much.data(), size) < 0) size /= 2;
    }
    fcntl(ends_[1], F_SETFL, flags);
  }

  const int before_;
  int ends_[2] = {};
};

TEST_F(Saying, WritesALine) {
  Say("kvstore_ext: waits");
  Say("");
  EXPECT_EQ(Heard(), "kvstore_ext: waits\n\n");
}

TEST_F(Saying, WritesTheBeginningOfALongLine) {
  Say(std::string(3 * PIPE_BUF, 'a'));
  EXPECT_EQ(Heard(), std::string(PIPE_BUF - 1, 'a') + "\n");
}

TEST_F(Saying, DropsWhatNobodyReadsAndWaitsForNobody) {
  Fill();
  Say("lost");
  EXPECT_EQ(Heard().find("lost"), std::string::npos);
  Say("heard");
  EXPECT_EQ(Heard(), "heard\n");
}

}  // namespace
}  // namespace kvstore_ext
