// Updates that the core makes of a slice by itself; tests/parts compares their bits with MXNet's.
#include "server/kernel_updates.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "support/float16.h"

namespace kvstore_ext {
namespace {

template <typename Number>
Buffer ToBuffer(const std::vector<Number>& numbers) {
  Buffer buffer = Buffer::Allocate(numbers.size() * sizeof(Number));
  std::memcpy(buffer.data.get(), numbers.data(), buffer.size);
  return buffer;
}

template <typename Number>
std::vector<Number> ToNumbers(const Buffer& buffer) {
  std::vector<Number> numbers(buffer.size / sizeof(Number));
  std::memcpy(numbers.data(), buffer.data.get(), buffer.size);
  return numbers;
}

Update Floats(const std::vector<float>& gradient, const std::vector<float>& value) {
  Update update;
  update.elements = value.size();
  update.gradient = ToBuffer(gradient);
  update.value = ToBuffer(value);
  return update;
}

TEST(KernelUpdates, SgdWithoutMomentum) {
  const Update update = Floats({1, -2, 64}, {8, 8, 8});
  SgdUpdate how;
  how.step = {0.5F, 0.25F, 2, 8, 0};
  Compute(how, update);
  EXPECT_EQ(ToNumbers<float>(update.value), (std::vector<float>{6, 9, 3}));
}

TEST(KernelUpdates, SgdKeepsItsVelocity) {
  const Update update = Floats({1, -2}, {8, 8});
  std::vector<float> velocity = {4, 0};
  SgdUpdate how;
  how.step = {0.5F, 0, 1, -1, 0.5F};
  how.velocity = velocity.data();
  Compute(how, update);
  EXPECT_EQ(velocity, (std::vector<float>{1.5F, 1}));
  EXPECT_EQ(ToNumbers<float>(update.value), (std::vector<float>{9.5F, 9}));
}

TEST(KernelUpdates, AdamKeepsItsMoments) {
  const Update update = Floats({2, 0}, {8, 8});
  std::vector<float> mean = {0, 2}, variance = {0, 16};
  AdamUpdate how;
  how.step = {1, 0, 1, -1, 0.5F, 0.75F, 1};
  how.mean = mean.data();
  how.variance = variance.data();
  Compute(how, update);
  EXPECT_EQ(mean, (std::vector<float>{1, 1}));
  EXPECT_EQ(variance, (std::vector<float>{1, 12}));
  const std::vector<float> value = ToNumbers<float>(update.value);
  EXPECT_EQ(value[0], 7.5F);
  EXPECT_NEAR(value[1], 8 - 1 / 4.4641F, 1e-5);
}

TEST(KernelUpdates, AHalfIsCastFromItsMaster) {
  Update update = Floats({1, -1}, {0, 0});
  update.dtype = DType::kFloat16;
  update.value = ToBuffer(std::vector<uint16_t>{0, 0});
  std::vector<float> master = {0.5F, 1e6F};
  SgdUpdate how;
  how.step.lr = 0.25F;
  how.master = master.data();
  Compute(how, update);
  EXPECT_EQ(master[0], 0.25F);
  EXPECT_EQ(ToNumbers<uint16_t>(update.value), (std::vector<uint16_t>{0x3400, 0x7c00}));
}

TEST(KernelUpdates, OtherTypesAreRefused) {
  Update update = Floats({1}, {1});
  update.dtype = DType::kFloat16;
  EXPECT_THROW(Compute(SgdUpdate(), update), std::invalid_argument);
  update.dtype = DType::kFloat64;
  EXPECT_THROW(Compute(AdamUpdate(), update), std::invalid_argument);
}

}  // namespace
}  // namespace kvstore_ext
