// Payloads that go through memory which two processes have in common.
#include "transport/placing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

namespace kvstore_ext {
namespace {

constexpr size_t kBytes = 5000;

class Placing : public testing::Test {
 protected:
  void SetUp() override {
    int descriptor = -1;
    ours_ = SharedMemory::Make(&descriptor);
    theirs_ = SharedMemory::Open(descriptor);
    close(descriptor);
    ASSERT_TRUE(ours_ && theirs_);
  }

  static Message WithBytes(size_t bytes) {
    Message message = ControlMessage(MessageType::kPush);
    message.payload = Buffer::Allocate(bytes);
    return message;
  }

  std::shared_ptr<SharedMemory> ours_, theirs_;
};

TEST_F(Placing, AMessageSaysWhereItsPayloadLiesAndHasItNoMore) {
  Message message = WithBytes(kBytes);
  ASSERT_TRUE(PutPayload(&message, ours_.get()));
  EXPECT_TRUE(message.place);
  EXPECT_EQ(message.payload.size, 0U);
  FetchPayload(&message, theirs_.get());
  EXPECT_FALSE(message.place);
  EXPECT_EQ(message.payload.size, kBytes);
  EXPECT_FALSE(message.payload_is_ours);
}

TEST_F(Placing, WhatIsShortOrHasNoSuchMemoryTravels) {
  Message message = WithBytes(100);
  EXPECT_FALSE(PutPayload(&message, ours_.get()));
  EXPECT_EQ(message.payload.size, 100U);
  EXPECT_FALSE(PlacePayload(WithBytes(kBytes), nullptr));
}

TEST_F(Placing, WhereNothingLiesThereIsNoPayload) {
  for (SharedMemory* memory : {theirs_.get(), static_cast<SharedMemory*>(nullptr)}) {
    Message message = WithBytes(kBytes);
    message.place = Place{1, kBytes, 77};
    message.payload_is_ours = true;
    FetchPayload(&message, memory);
    EXPECT_FALSE(message.place);
    EXPECT_EQ(message.payload.size, 0U);
    EXPECT_FALSE(message.payload_is_ours);
  }
}

}  // namespace
}  // namespace kvstore_ext
