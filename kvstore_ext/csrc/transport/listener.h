// The scheduler's part in the lane: it hears of a failure, which would otherwise leave it waiting
// for processes that are gone.
#pragma once

#include <memory>

#include "support/failure.h"
#include "transport/transport.h"

namespace kvstore_ext {

// Thread-safe.
class Listener {
 public:
  explicit Listener(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {
    transport_->Start([this](Message message) {
      if (message.header.type == MessageType::kAbort) failure_.Set(message.text);
    });
  }
  ~Listener() { Stop(); }

  // The reason of a failure, waiting for one up to a time; an empty string if there is none.
  std::string AwaitFailure(double seconds) const { return failure_.Wait(seconds); }

  // Has AwaitFailure return at once, now and later.
  void EndWaits() { failure_.EndWaits(); }

  void Stop() { transport_->Stop(); }

 private:
  Failure failure_;
  std::shared_ptr<Transport> transport_;
};

}  // namespace kvstore_ext
