// What ps-lite brings as a message's body is split, and a payload is fetched from shared memory
// where it says so: from nowhere but where the other end has put one, once.
#include "transport/body.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "input.h"
#include "transport/placing.h"

namespace kvstore_ext {
namespace {

constexpr int kPeer = 3;
constexpr size_t kMostPuts = 5;
constexpr uint8_t kAroundABlock = 255;  // in place of a length

size_t sum_of_bytes;  // so that each is read

void ReadAll(const char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) sum_of_bytes += static_cast<unsigned char>(bytes[i]);
}

// Memory that two processes have; the one that puts is this target.
struct Ends {
  Ends() {
    int descriptor = -1;
    putter = SharedMemory::Make(&descriptor);
    fetcher = SharedMemory::Open(descriptor);
    if (!putter || !fetcher) std::abort();
    close(descriptor);
  }

  std::shared_ptr<SharedMemory> putter, fetcher;
};

class Reader {
 public:
  explicit Reader(Input input) : input_(input) {}

  void Run() {
    const size_t puts = input_.Below(kMostPuts);
    for (size_t i = 0; i < puts; ++i) Put();
    const auto choices = input_.Take<uint8_t>();
    Message message;
    message.header = input_.Take<Header>();
    if ((choices & 1) != 0) message.header.protocol = Header::kProtocol;
    std::optional<Place> place;
    if ((choices & 2) != 0) place = AnyPlace();
    message.text = input_.Rest();
    std::string body = BodyOf(message, place);
    if ((choices & 4) != 0) body = body.substr(0, choices);  // breaks off
    Take(body, (choices & 8) != 0);
    TakeBack();
  }

 private:
  static Ends& Shared() {
    static Ends ends;
    return ends;
  }

  void Put() {
    const auto choice = input_.Take<uint8_t>();
    const size_t bytes =
        choice == kAroundABlock ? SharedMemory::kBlockBytes + input_.Below(2) : choice * size_t{16};
    if (const auto place = Shared().putter->Put(Buffer::Allocate(bytes))) put_.push_back(*place);
  }

  // One that there is, but for what the input changes in it.
  Place AnyPlace() {
    Place place;
    if (!put_.empty()) place = put_[input_.Below(put_.size())];
    place.block ^= input_.Take<uint8_t>();
    place.bytes ^= input_.Take<uint32_t>();
    place.ticket ^= input_.Take<uint8_t>();
    return place;
  }

  void Take(const std::string& body, bool is_placed) {
    std::optional<Message> message = ReadBody(body, is_placed);
    if (!message) {
      const Message news = NewsOf(body, kPeer);
      if (news.peer != kPeer && news.peer != kNobody) std::abort();
      return;
    }
    const size_t place_bytes = message->place ? sizeof(Place) : 0;
    if (sizeof(Header) + place_bytes + message->text.size() != body.size()) std::abort();
    ReadAll(message->text.data(), message->text.size());
    const std::optional<Place> place = message->place;
    FetchPayload(&*message, Shared().fetcher.get());
    ReadAll(message->payload.data.get(), message->payload.size);
    if (message->payload.data == nullptr) return;
    if (!place || !WasPut(*place) || message->payload.size != place->bytes) std::abort();
    message->place = place;
    FetchPayload(&*message, Shared().fetcher.get());
    if (message->payload.data != nullptr) std::abort();  // it was fetched
  }

  // The writer is trusted with the length, as with the bytes.
  bool WasPut(const Place& place) const {
    for (const Place& each : put_) {
      if (each.block == place.block && each.ticket == place.ticket) return true;
    }
    return false;
  }

  void TakeBack() {
    for (const Place& place : put_) {
      Message message;
      message.place = place;
      FetchPayload(&message, Shared().fetcher.get());
    }
  }

  Input input_;
  std::vector<Place> put_;
};

}  // namespace
}  // namespace kvstore_ext

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvstore_ext::Reader(kvstore_ext::Input(data, size)).Run();
  return 0;
}
