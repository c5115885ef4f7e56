#include "keys/idle.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kvstore_ext {
namespace {

// A text is its numbers as they lie in memory; rounds end it, each a key and a number.
using Numbers = std::vector<uint64_t>;

std::string TextOf(Numbers numbers, const Rounds& rounds) {
  for (const auto& round : rounds) {
    numbers.insert(numbers.end(), {round.first, round.second});
  }
  return std::string(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof numbers[0]);
}

void CheckReadable(bool readable, const std::string& text) {
  if (readable) return;
  throw std::invalid_argument("a notice of idle workers of " + std::to_string(text.size()) +
                              " bytes cannot be read");
}

// At least one.
Numbers NumbersOf(const std::string& text) {
  Numbers numbers(text.size() / sizeof(uint64_t));
  CheckReadable(!numbers.empty() && text.size() % sizeof numbers[0] == 0, text);
  std::memcpy(numbers.data(), text.data(), text.size());
  return numbers;
}

Rounds RoundsFrom(const Numbers& numbers, size_t begin, const std::string& text) {
  CheckReadable(begin <= numbers.size() && (numbers.size() - begin) % 2 == 0, text);
  Rounds rounds;
  for (size_t i = begin; i < numbers.size(); i += 2) rounds[numbers[i]] = numbers[i + 1];
  return rounds;
}

}  // namespace

std::string IdleNotice::Pack() const { return TextOf({mean ? 1U : 0U}, sparse); }

IdleNotice IdleNotice::Unpack(const std::string& text) {
  const Numbers numbers = NumbersOf(text);
  return {numbers[0] != 0, RoundsFrom(numbers, 1, text)};
}

std::string Resumption::Pack() const {
  Numbers numbers{missed.size()};
  numbers.insert(numbers.end(), missed.begin(), missed.end());
  return TextOf(std::move(numbers), rounds);
}

Resumption Resumption::Unpack(const std::string& text) {
  const Numbers numbers = NumbersOf(text);
  CheckReadable(numbers[0] < numbers.size(), text);
  const auto begin = numbers.begin() + 1;
  const auto end = begin + static_cast<ptrdiff_t>(numbers[0]);
  return {std::set<int>(begin, end), RoundsFrom(numbers, 1 + numbers[0], text)};
}

}  // namespace kvstore_ext
