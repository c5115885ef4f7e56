#include "server/scaler_sharing.h"

#include <cmath>
#include <stdexcept>

#include "keys/shared_scaler.h"
#include "support/clock.h"
#include "support/ranks.h"
#include "transport/gate.h"

namespace kvstore_ext {

void ScalerSharing::Check(const Message& message, bool any_round) const {
  UnpackScaler(message.text);
  Expect(any_round || (message.header.round == round_ && heard_.count(message.peer) == 0),
         "that round of the key's scalers is not open for that worker");
}

void ScalerSharing::Take(const Message& message, const std::string& key) {
  if (message.header.round != round_ || heard_.count(message.peer) != 0) {
    throw std::runtime_error("key " + key + ": worker " + std::to_string(message.peer) +
                             " sent a scaler of round " + std::to_string(message.header.round) +
                             "; round " + std::to_string(round_) + " is open");
  }
  if (heard_.empty()) since_ = Now();
  heard_[message.peer] = UnpackScaler(message.text);
  if (message.peer == heard_.begin()->first) encoding_ = message.header.encoding;
}

std::optional<Message> ScalerSharing::Answer(uint64_t key, size_t workers) {
  if (heard_.empty() || heard_.size() < workers) return std::nullopt;
  float largest = 0;
  for (const auto& scaler : heard_) {
    if (!(scaler.second <= largest) && !std::isnan(largest)) largest = scaler.second;
  }
  Message answer = ControlMessage(MessageType::kScaler, PackScaler(largest));
  answer.header.key = key;
  answer.header.round = round_;
  answer.header.encoding = encoding_;
  heard_.clear();
  ++round_;
  return answer;
}

std::set<int> ScalerSharing::senders() const { return RanksOf(heard_); }

}  // namespace kvstore_ext
