// What a worker's rounds wait for under Slim-DP, and what is done ahead of them (worker.h).
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "worker.h"

namespace kvstore_ext {

// What cannot be prepared, or is too late, is done when its turn to be sent has come.
void Worker::TryPrepareNext(const Turn& turn) {
  Key* key = turn.round->key;
  try {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (key->encoded == turn.round) key->codec->PrepareNext(*turn.slice, turn.round->number + 1);
  } catch (const std::exception&) {
  }
}

// After everything that is to be sent.
void Worker::PrepareNext(Key* key) {
  if (key->encoded == nullptr || !key->codec->prepares_next() || IsSmall(*key)) return;
  for (const Slice& slice : key->slices) {
    encodings_.Push(std::numeric_limits<int>::min(), 0,
                    {key->encoded, &slice, Turn::Work::kPrepareNext});
  }
}

// Keeps a turn whose round has to wait for cores; false where it has not.
bool Worker::Park(const Turn& turn) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (turn.round->key->codec->Ready(turn.round->number)) return false;
  parked_.push_back(turn);
  return true;
}

// A server tells the core of a slice: a new one, or its own because this worker's was another.
void Worker::OnCore(const Message& message) {
  Key* key = Find(message.header.key);
  const Slice& slice = key->slices.at(message.header.slice);
  auto& codec = CodecOf<SlimKey>(message.header.key);
  const bool refused = message.header.encoding == Encoding::kSkipped;
  const bool asks = refused && message.payload.size == 0 && slice.length > 0;
  if (!asks) codec.SetCore(slice, message.header.round, message.payload);
  std::vector<Turn> turns;
  if (refused) {
    std::lock_guard<std::mutex> lock(key->mutex);
    if (key->busy && !key->arrived[slice.index]) turns.emplace_back(key->encoded, &slice);
  }
  if (asks && !turns.empty()) {
    Message answer;
    answer.header = message.header;
    answer.header.encoding = Encoding::kPlain;
    answer.payload = codec.CoreOf(slice, turns.front().round->number)->members.ToBuffer();
    links_[slice.server]->Send(std::move(answer));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto waiting = std::partition(parked_.begin(), parked_.end(), [](const Turn& turn) {
      return turn.round->key->codec->Ready(turn.round->number);
    });
    turns.insert(turns.end(), parked_.begin(), waiting);
    parked_.erase(parked_.begin(), waiting);
  }
  for (Turn& turn : turns) {
    const int priority = turn.round->key->priority;
    encodings_.Push(priority, 0, std::move(turn));
  }
}

}  // namespace kvstore_ext
