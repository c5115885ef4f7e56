// One slice of Slim-DP at a server, and the choice of its core, whoever asks.
#include "slim_dp/slim_slice.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "forged.h"
#include "slim_dp/slim_server.h"

namespace kvstore_ext {
namespace {

constexpr size_t kElements = 100;

// Of a server with one worker.
class SlimSlices : public testing::Test {
 protected:
  void SetUp() override {
    SliceContext context;
    context.declaration.elements = kElements;
    context.declaration.name = "0";
    context.declaration.method =
        "slim_dp alpha=0.5 beta=0.25 q=1000 core_delay=0 server_lr=1 seed=0 explorer=seed "
        "explorer_mean=pushed";
    context.send = [](int, const Message&) {};
    slice_ = server_.MakeReduction(std::move(context));
  }

  void TakeFirstValue() {
    ASSERT_TRUE(slice_->Accept(With(Of(MessageType::kInit, 0, 0), kElements * sizeof(float))));
    slice_->Finish(0);
  }

  void Resume(size_t elements, size_t of_core) {
    std::map<uint64_t, Subset> cores;
    cores.emplace(0, Subset(of_core));
    const Buffer parameters = With(Message(), elements * sizeof(float)).payload;
    server_.Resume({0, 0}, parameters, std::move(cores));
  }

  SlimServer server_{Limits()};
  std::unique_ptr<Reduction> slice_;
};

TEST_F(SlimSlices, GoOnWithNothingThatIsNotTheirs) {
  for (const size_t elements : {size_t{0}, kElements}) {  // before the first value
    EXPECT_THROW(Resume(elements, elements), std::invalid_argument) << elements;
  }
  TakeFirstValue();
  for (const size_t elements : {size_t{0}, kElements - 1, kElements + 1}) {
    EXPECT_THROW(Resume(elements, elements), std::invalid_argument) << elements;
    EXPECT_THROW(Resume(kElements, elements), std::invalid_argument) << elements;
  }
  EXPECT_NO_THROW(Resume(kElements, kElements));
}

}  // namespace
}  // namespace kvstore_ext
