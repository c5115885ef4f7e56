// One slice of Slim-DP at a server, and the choice of its core, whoever asks.
#include "slim_dp/slim_slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

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

TEST_F(SlimSlices, AwaitACoreUntilOneThatCanBeReadHasCome) {
  TakeFirstValue();
  EXPECT_FALSE(slice_->Awaits(0));
  UpdateHeader header;
  header.round = 1;
  Message update = With(Of(MessageType::kPush), sizeof header);
  update.header.encoding = Encoding::kEncoded;
  std::memcpy(update.payload.data.get(), &header, sizeof header);
  EXPECT_FALSE(slice_->Accept(update));  // since there is no core yet
  EXPECT_TRUE(slice_->Awaits(0));
  const Buffer right = Subset(kElements, true).ToBuffer();
  const Buffer broken = right.Copy();
  std::memset(broken.data.get(), 0xff, broken.size);  // elements 100 to 127 as well
  EXPECT_THROW(slice_->OnMessage(CoreMessage{0, false, broken}.Pack()), Unfit);
  EXPECT_TRUE(slice_->Awaits(0));
  slice_->OnMessage(CoreMessage{0, false, right}.Pack());
  EXPECT_FALSE(slice_->Awaits(0));
}

Buffer Ones(size_t elements) {
  Buffer bytes = Buffer::Allocate(elements * sizeof(float));
  std::fill_n(reinterpret_cast<float*>(bytes.data.get()), elements, 1.0F);
  return bytes;
}

TEST(SlimSelections, AnswerWhateverElseIsAskedMeanwhile) {
  std::map<SliceName, std::shared_ptr<SlimSlice::Snapshot>> snapshots;
  std::map<SliceName, uint64_t> all;
  for (uint64_t key = 0; key < 3; ++key) {
    const SliceName name(key, 0);
    snapshots[name] = std::make_shared<SlimSlice::Snapshot>(0, Ones(1000), Buffer());
    all[name] = 1000;
  }
  CoreSelection selection(std::move(snapshots));
  selection.Sample(1, 1);
  selection.Divide(Bracket());
  const float one = 1;
  uint32_t bits;
  std::memcpy(&bits, &one, sizeof bits);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int asker = 0; asker < 4; ++asker) {
    threads.emplace_back([&, asker] {
      for (int i = 0; i < 200; ++i) {
        if (asker < 2) {
          wrong += selection.Sample(1, 10).size() != 300;
          wrong += selection.Divide(Bracket()) != 0;
        } else {
          wrong += selection.CountEqual(bits) != all;
          wrong += selection.CountUpper()[bits >> 16] != 3000;
          wrong += selection.CountLower(bits >> 16)[bits & 0xffff] != 3000;
          for (const auto& core : selection.Choose(bits, all)) wrong += core.second.count() != 1000;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace kvstore_ext
