// What a fuzz target makes of the fuzzer's bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "transport/message.h"

namespace kvstore_ext {

// Gives a target what it asks for, from the front; zeros once there is nothing left.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }

  template <typename Number>
  Number Take() {
    Number number{};
    Copy(&number, sizeof number);
    return number;
  }

  // A number below a bound of at most 256.
  size_t Below(size_t bound) { return Take<uint8_t>() % bound; }

  // As many of so many bytes as there are left.
  std::string Text(size_t bytes) {
    std::string text(std::min(bytes, left_), '\0');
    Copy(text.data(), text.size());
    return text;
  }
  std::string Rest() { return Text(left_); }

  // Writes over what is there, as far as the input reaches.
  void Copy(void* to, size_t bytes) {
    const size_t count = std::min(bytes, left_);
    if (count > 0) std::memcpy(to, data_, count);
    data_ += count;
    left_ -= count;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Bytes as they come from the network: the sanitizer sees what is read behind the last one.
inline Buffer Received(const std::string& bytes) {
  auto* memory = static_cast<char*>(std::malloc(bytes.size()));
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return {bytes.size(), bytes.size(), std::shared_ptr<char>(memory, std::free)};
}

// A message of any bytes. Every other one says of its payload what holds.
inline Message AnyMessage(Input* input) {
  Message message;
  message.header = input->Take<Header>();
  const size_t sizes = input->Take<uint8_t>();
  message.text = input->Text(sizes / 16 * 8);
  message.payload = Received(input->Text(sizes % 16 * 8));
  message.payload_is_ours = true;
  if (sizes % 2 == 0) {
    message.header.offset = 0;
    message.header.whole = static_cast<uint32_t>(message.payload.size);
  }
  return message;
}

// Has a job do what the input says, step by step.
template <typename Job>
int RunSteps(const uint8_t* data, size_t size) {
  Input input(data, size);
  Job job(&input);
  while (!input.empty()) job.Step();
  return 0;
}

}  // namespace kvstore_ext
