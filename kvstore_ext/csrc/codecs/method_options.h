// What a method can be told: its options, what each may be, and the text in which they travel,
// "terngrad clip_sigma=2.5 scaler_sharing=1 seed=0".
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace kvstore_ext {

// Seeds are whole numbers up to what a double tells apart.
constexpr double kLargestSeed = 0x1p53;

// One option: a number of a range, or one of some words. The range stands here alone; Python asks
// for it.
struct MethodOption {
  static constexpr double kNoMost = std::numeric_limits<double>::infinity();

  std::string name;
  double least = 0;
  double most = kNoMost;
  bool whole = false;  // otherwise any number that float32 can hold
  bool above = false;  // the least itself is not allowed
  std::vector<std::string> words = {};

  static MethodOption Number(const char* name, double least, double most = kNoMost) {
    return {name, least, most};
  }
  static MethodOption NumberAbove(const char* name, double least, double most = kNoMost) {
    return {name, least, most, false, true};
  }
  static MethodOption Whole(const char* name, double least, double most) {
    return {name, least, most, true};
  }
  static MethodOption Flag(const char* name) { return Whole(name, 0, 1); }
  static MethodOption Seed() { return Whole("seed", 0, kLargestSeed); }
  static MethodOption Choice(const char* name, std::vector<std::string> words) {
    return {name, 0, 0, false, false, std::move(words)};
  }

  bool Allows(double value) const;

  // What it may be: "a whole number 2 to 8", "l2 or max".
  std::string Allowed() const;
};

// The values of all of a method's options, each as it may be.
class MethodValues {
 public:
  // From a specification: the method's name and OPTION=VALUE for each option, in any order, with
  // blanks between them. Throws std::invalid_argument for an option that is missing, unknown, given
  // twice or not as it may be.
  MethodValues(const std::string& specification, const std::vector<MethodOption>& options);

  // Precondition of all: the method has this option.
  double Number(const char* option) const { return numbers_.at(option); }
  uint64_t Whole(const char* option) const { return static_cast<uint64_t>(Number(option)); }
  bool Flag(const char* option) const { return Number(option) != 0; }
  const std::string& Word(const char* option) const { return words_.at(option); }

 private:
  void Read(const MethodOption& option, const std::string& text);

  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> words_;
};

// The method's name, with which a specification begins.
std::string MethodNameIn(const std::string& specification);

}  // namespace kvstore_ext
