#include "codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "dgc.h"
#include "float16.h"
#include "half.h"
#include "kernels.h"
#include "one_bit.h"
#include "qsgd.h"
#include "terngrad.h"
#include "two_bit.h"

namespace kvstore_ext {
namespace {

constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr double kLargestCount = 0x1p32;
constexpr double kLargestSeed = 0x1p53;  // what a double tells apart
constexpr double kSmallest = std::numeric_limits<float>::denorm_min();

struct Number {
  const char* name;
  double least;
  double most;
  double step;  // it must be a multiple of this; 0 for any number
  const char* allowed;
};

using Numbers = std::vector<double>;

struct Method {
  const char* name;
  std::vector<Number> numbers;
  size_t required;  // the numbers after these are 0 where they are left out
  std::shared_ptr<const Codec> (*make)(const Numbers& numbers, int workers);
};

const Number kSeed = {"SEED", 0, kLargestSeed, 1, "a whole number up to 2^53"};
const Number kFeedback = {"ERROR_FEEDBACK", 0, 1, 1, "0 or 1"};
const Number kBucket = {"BUCKET", 1, kLargestCount, 1, "a whole number from 1 on"};

std::shared_ptr<const Codec> MakeQsgd(const Numbers& numbers, int) {
  QsgdOptions options;
  options.bits = static_cast<int>(numbers[0]);
  options.bucket = static_cast<size_t>(numbers[1]);
  options.norm = numbers[2] == 0 ? QsgdOptions::Norm::kMax : QsgdOptions::Norm::kL2;
  options.error_feedback = numbers[4] != 0;
  options.seed = static_cast<uint64_t>(numbers[3]);
  return std::make_shared<Qsgd>(options);
}

const std::vector<Method>& Methods() {
  static const std::vector<Method> methods = {
      {"2bit",
       {{"THRESHOLD", kSmallest, kLargestFloat, 0, "above 0"}},
       1,
       [](const Numbers& numbers, int) -> std::shared_ptr<const Codec> {
         return std::make_shared<TwoBit>(static_cast<float>(numbers[0]));
       }},
      {"dgc",
       {{"FINAL_RATIO", kSmallest, 1, 0, "above 0, up to 1"},
        {"WARMUP", 0, kLargestCount, 1, "a whole number"},
        {"STAGES", 0, kLargestCount, 1, "a whole number"},
        {"CLIP", 0, kLargestFloat, 0, "0 or above"}},
       4,
       [](const Numbers& numbers, int workers) -> std::shared_ptr<const Codec> {
         return std::make_shared<Dgc>(DgcOptions{numbers[0], static_cast<uint64_t>(numbers[1]),
                                                 static_cast<uint64_t>(numbers[2]), numbers[3]},
                                      workers);
       }},
      {"fp16",
       {kFeedback},
       1,
       [](const Numbers& numbers, int) -> std::shared_ptr<const Codec> {
         return std::make_shared<Half>(numbers[0] != 0);
       }},
      {"onebit",
       {kBucket, kFeedback},
       2,
       [](const Numbers& numbers, int) -> std::shared_ptr<const Codec> {
         return std::make_shared<OneBit>(
             OneBitOptions{static_cast<size_t>(numbers[0]), numbers[1] != 0});
       }},
      {"qsgd",
       {{"BITS", 2, 8, 1, "2 to 8"},
        kBucket,
        {"NORM", 0, 2, 2, "2 (l2) or 0 (largest)"},
        kSeed,
        kFeedback},
       5,
       MakeQsgd},
      {"terngrad",
       {{"CLIP_SIGMA", 0, kLargestFloat, 0, "0 or above"},
        {"SHARING", 0, 1, 1, "0 or 1"},
        kSeed,
        kFeedback},
       3,
       [](const Numbers& numbers, int workers) -> std::shared_ptr<const Codec> {
         return std::make_shared<TernGrad>(
             TernGradOptions{numbers[0], numbers[1] != 0, numbers[3] != 0,
                             static_cast<uint64_t>(numbers[2])},
             workers);
       }},
  };
  return methods;
}

[[noreturn]] void Refuse(const std::string& specification, const std::string& expected) {
  throw std::invalid_argument("compression '" + specification + "': " + expected);
}

const Method& FindMethod(const std::string& name, const std::string& specification) {
  std::string names;
  for (const Method& method : Methods()) {
    if (name == method.name) return method;
    names += std::string(names.empty() ? "" : ", ") + method.name;
  }
  Refuse(specification, "there are " + names);
}

Numbers Parse(const Method& method, std::istringstream* words, const std::string& specification) {
  Numbers numbers;
  std::string word;
  while (*words >> word) {
    if (numbers.size() == method.numbers.size()) Refuse(specification, "too many numbers");
    const Number& number = method.numbers[numbers.size()];
    std::istringstream text(word);
    text.imbue(std::locale::classic());
    double value = 0;
    text >> value;
    const bool read = !text.fail() && text.peek() == std::istringstream::traits_type::eof();
    if (!read || !(value >= number.least && value <= number.most) ||
        (number.step > 0 && std::fmod(value, number.step) != 0)) {
      Refuse(specification,
             std::string(number.name) + " is " + word + "; it must be " + number.allowed);
    }
    numbers.push_back(value);
  }
  if (numbers.size() < method.required) {
    Refuse(specification, std::string(method.numbers[numbers.size()].name) + " is missing");
  }
  numbers.resize(method.numbers.size());
  return numbers;
}

}  // namespace

float Codec::Scaler(const float* values, size_t elements) const {
  const bool finite = kernels().largest(values, elements) < kNotFinite;
  return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
}

float Codec::ScalerOf(const Buffer&) const { return 0; }

Buffer Codec::EncodeSum(const float*, size_t, float, const Draws&) const { return Buffer(); }

void Codec::DecodeSum(float* out, size_t elements, const Buffer& bytes) const {
  std::fill_n(out, elements, 0.0F);
  AddTo(out, elements, bytes);
}

std::shared_ptr<const Codec> MakeCodec(const std::string& specification, int workers) {
  std::istringstream words(specification);
  std::string name;
  words >> name;
  const Method& method = FindMethod(name, specification);
  return method.make(Parse(method, &words, specification), workers);
}

}  // namespace kvstore_ext
