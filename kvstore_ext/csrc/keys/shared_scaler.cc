#include "keys/shared_scaler.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kvstore_ext {

std::string PackScaler(float scaler) {
  return std::string(reinterpret_cast<const char*>(&scaler), sizeof scaler);
}

float UnpackScaler(const std::string& text) {
  float scaler;
  if (text.size() != sizeof scaler) {
    throw std::invalid_argument("a scaler of " + std::to_string(text.size()) + " bytes");
  }
  std::memcpy(&scaler, text.data(), sizeof scaler);
  if (scaler < 0 || std::isinf(scaler)) {
    throw std::invalid_argument("a scaler of " + std::to_string(scaler));
  }
  return scaler;
}

void SharedScaler::Ask(KeyLane* lane, uint64_t round, float scaler, bool plain, Then then) {
  const int server = lane->slices().front().server;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    round_ = round;
    server_ = server;
    then_ = std::move(then);
  }
  Message message = ControlMessage(MessageType::kScaler, PackScaler(scaler));
  message.header.round = round;
  message.header.encoding = plain ? Encoding::kPlain : Encoding::kEncoded;
  lane->SendControl(server, std::move(message));
}

void SharedScaler::OnMessage(const Message& message) {
  Then then;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (then_ == nullptr || message.header.round != round_) return;
    then = std::move(then_);
    then_ = nullptr;
  }
  const float scaler = UnpackScaler(message.text);
  then(scaler, std::isnan(scaler) ? Encoding::kSkipped : message.header.encoding);
}

std::set<int> SharedScaler::awaited() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return then_ == nullptr ? std::set<int>() : std::set<int>{server_};
}

}  // namespace kvstore_ext
