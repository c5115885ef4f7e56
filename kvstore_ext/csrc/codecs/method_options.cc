#include "codecs/method_options.h"

#include <algorithm>
#include <cmath>
#include <locale>
#include <sstream>
#include <stdexcept>

namespace kvstore_ext {
namespace {

std::string TextOf(double number) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(16);
  text << number;
  return text.str();
}

// Not a number where the text is none.
double NumberIn(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  double number = 0;
  stream >> number;
  const bool read = !stream.fail() && stream.peek() == std::istringstream::traits_type::eof();
  return read ? number : std::numeric_limits<double>::quiet_NaN();
}

std::string NamesOf(const std::vector<MethodOption>& options) {
  std::string names;
  for (const MethodOption& option : options) names += (names.empty() ? "" : ", ") + option.name;
  return names;
}

const MethodOption& Find(const std::vector<MethodOption>& options, const std::string& name) {
  for (const MethodOption& option : options) {
    if (option.name == name) return option;
  }
  throw std::invalid_argument("there is no option '" + name + "'; the options are " +
                              NamesOf(options));
}

}  // namespace

bool MethodOption::Allows(double value) const {
  if (!(above ? value > least : value >= least) || !(value <= most)) return false;
  if (whole) return std::floor(value) == value;
  const auto narrow = static_cast<float>(value);
  return std::isfinite(narrow) && (narrow != 0 || value == 0);
}

std::string MethodOption::Allowed() const {
  std::string allowed;
  if (!words.empty()) {
    for (const std::string& word : words) allowed += (allowed.empty() ? "" : " or ") + word;
    return allowed;
  }
  allowed = whole ? "a whole number " : "a number ";
  allowed += (above ? "above " : "") + TextOf(least);
  if (most < kNoMost) return allowed + " to " + TextOf(most);
  return allowed + (above ? "" : " or more");
}

MethodValues::MethodValues(const std::string& specification,
                           const std::vector<MethodOption>& options) {
  try {
    std::istringstream stream(specification);
    std::string word;
    stream >> word;  // the method's name
    while (stream >> word) {
      const size_t equals = std::min(word.find('='), word.size());
      const MethodOption& option = Find(options, word.substr(0, equals));
      Read(option, word.substr(std::min(equals + 1, word.size())));
    }
    for (const MethodOption& option : options) {
      if (numbers_.count(option.name) + words_.count(option.name) == 0) {
        throw std::invalid_argument(option.name + " is missing; it must be " + option.Allowed());
      }
    }
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("compression '" + specification + "': " + error.what());
  }
}

void MethodValues::Read(const MethodOption& option, const std::string& text) {
  bool fits;
  bool fresh;
  if (option.words.empty()) {
    const double number = NumberIn(text);
    fits = option.Allows(number);
    fresh = numbers_.emplace(option.name, number).second;
  } else {
    fits = std::find(option.words.begin(), option.words.end(), text) != option.words.end();
    fresh = words_.emplace(option.name, text).second;
  }
  if (!fits) {
    throw std::invalid_argument(option.name + " is " + text + "; it must be " + option.Allowed());
  }
  if (!fresh) throw std::invalid_argument(option.name + " is given twice");
}

std::string MethodNameIn(const std::string& specification) {
  std::string name;
  std::istringstream(specification) >> name;
  return name;
}

}  // namespace kvstore_ext
