#include "transport/link.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "support/clock.h"
#include "support/ranks.h"
#include "support/resends.h"
#include "transport/checksum.h"
#include "transport/gate.h"
#include "transport/message_event.h"

namespace kvstore_ext {
namespace {

// Bytes that a message counts in the window. Slices of a few bytes, or none, are bounded too.
size_t Weight(const Message& message) { return std::max(message.payload.size, sizeof(Header)); }

// Credit for a few small slices waits for a message that takes it along, or for more of them: they
// would cost as many messages again.
constexpr size_t kMostWithheld = 16384;

// What is under way of a link on which a message is alone: credit for so much may not have come
// yet.
constexpr size_t kFewBytes = 2048;

// With what is withheld of the credit, 12 of the 16 blocks: the others are for what has been
// acknowledged and waits for other workers.
constexpr Window kSharedWindow = {SharedMemory::kBlockBytes, 8 * SharedMemory::kBlockBytes};

constexpr size_t kMostParts = 1024;

// That leave while nothing is heard of the peer: ZeroMQ keeps 1000 for one that is gone, and then
// whoever sends one more waits for ever. Of signs of life more may, for what is behind rows of
// MXNet's own store is late, and not gone; but from so many on only some do.
constexpr int kMostUnheard = 500;
constexpr int kMostSigns = 800;
constexpr int kManySigns = 300;
constexpr int kOfSigns = 5;

constexpr double kSecondsBetweenPings = 0.05;
// After which a ping, or its answer, counts as lost with a connection that has broken.
constexpr int64_t kLongestPing = 60'000'000'000;  // nanoseconds
// The first ones find caches cold and connections new.
constexpr int kFirstPings = 10;

// Whether the window bounds how many of them are under way.
bool IsBounded(const Message& message) {
  switch (message.header.type) {
    case MessageType::kInit:
    case MessageType::kPush:
    case MessageType::kPull:
    case MessageType::kResult:
    case MessageType::kAsk:
    case MessageType::kAnswer:
    case MessageType::kMethod: return true;
    default: return false;
  }
}

// Control messages of which there is one for each key.
bool IsOneOfMany(MessageType type) {
  return type == MessageType::kScaler || type == MessageType::kMeet || type == MessageType::kSparse;
}

// Whether somebody would wait for ever where it is lost. Not so while a cluster forms or ends,
// which have limits of their own, nor for what is said again, or may be missed.
bool IsAwaited(const Message& message) {
  switch (message.header.type) {
    case MessageType::kHello:
    case MessageType::kJoin:
    case MessageType::kWelcome:
    case MessageType::kCredit:
    case MessageType::kPing:
    case MessageType::kPong:
    case MessageType::kWindow:
    case MessageType::kOrder:
    case MessageType::kNotice:
    case MessageType::kFarewell:
    case MessageType::kBye:
    case MessageType::kAbort:
    case MessageType::kBatch: return false;
    case MessageType::kMeet: return !IsOfSparseRound(message);
    default: return true;
  }
}

}  // namespace

Link::Link(std::shared_ptr<Transport> transport, int peer,
           std::shared_ptr<WindowEstimator> estimator, std::function<void(const Message&)> on_send,
           TaskThreads* sender, Gate* gate, Recorder* recorder)
    : transport_(std::move(transport)),
      peer_(peer),
      on_send_(std::move(on_send)),
      sender_(sender),
      gate_(gate),
      recorder_(recorder),
      signs_(Now()),
      assemblies_(peer),
      estimator_(std::move(estimator)) {
  SetWindow(Window());
}

void Link::SetWindow(const Window& window) {
  if (!shares_) Allow(window, std::min<size_t>(kMostWithheld, window.bytes / 8));
}

void Link::UseSharedWindow() {
  shares_ = true;
  if (estimator_) estimator_->LeaveOut(peer_);
  Allow(kSharedWindow, kSharedWindow.bytes / 2);
}

void Link::Allow(const Window& window, size_t withheld) {
  part_bytes_ = window.part_bytes;
  withheld_ = withheld;
  // The peer may keep so much credit to itself: what waits for it must not wait for ever. One whose
  // data carries it keeps more, but not once that data has left. While the two know different
  // windows, the signs of life that both send each second take it along.
  const size_t unlimited = SendQueue<Message>::kUnlimited;
  queue_.SetWindow(window.bytes < unlimited - withheld_ ? window.bytes + withheld_ : unlimited,
                   withheld_);
  SendWhatFits();
}

void Link::Send(Message message) {
  if (message.payload.size > std::numeric_limits<uint32_t>::max()) {
    throw std::length_error("a message of " + std::to_string(message.payload.size) +
                            " bytes; one has at most " +
                            std::to_string(std::numeric_limits<uint32_t>::max()));
  }
  if (estimator_) Measure();
  const bool alone = queue_.size() == 0 && queue_.in_flight() <= kFewBytes;
  // Whatever a window says, a message has no more parts than that.
  const size_t most = std::max<size_t>(part_bytes_, message.payload.size / kMostParts + 1);
  message.header.whole = static_cast<uint32_t>(message.payload.size);
  const bool small = Batch::IsSmall(message) || PutsPayloads();
  const Buffer whole = std::move(message.payload);
  const size_t parts = std::max<size_t>(1, (whole.size + most - 1) / most);
  message.peer = peer_;
  for (size_t i = 0; i < parts; ++i) {
    const size_t begin = whole.size * i / parts;
    Message part = message;
    // Whoever takes a part of a first value in has to know how long that may be.
    if (i > 0 && part.header.type != MessageType::kInit) part.text.clear();
    part.header.offset = static_cast<uint32_t>(begin);
    part.payload = whole.Range(begin, whole.size * (i + 1) / parts - begin);
    queue_.Push(part.priority, Weight(part), std::move(part));
  }
  if (sender_ != nullptr && !alone && small) return SendSoon();
  SendWhatFits();
}

void Link::SendSoon() {
  if (sends_soon_.exchange(true)) return;
  sender_->Run(0, [this] {
    sends_soon_ = false;
    SendWhatFits();
  });
}

void Link::SendControl(Message message) {
  message.peer = peer_;
  if (IsOneOfMany(message.header.type)) {
    queue_.Push(kControlPriority, 0, std::move(message));
    return SendWhatFits();
  }
  const Outlet::Way way(&outlet_);
  if (!way.open()) return;
  CountSent(message);
  Dispatch(&message);
}

void Link::Dispatch(Message* message) {
  message->job = job_;
  told_ = message->header.credit = taken_;
  if (message->header.type == MessageType::kCredit) {
    const uint32_t number = ++announcements_;  // first, so that a later one says nothing older
    AnnounceStock(message, stock_leaving_, number);
    AnnounceCount(message, counted_);
  }
  // Not that of who sent it, where it is passed on.
  message->header.checksum = checks_ && !message->place ? ChecksumOf(*message) : 0;
  Count(&messages_sent_, message->header.type, 1);
  unanswered_ = 0;
  ++unheard_;
  transport_->Send(*message);
}

void Link::CountSent(const Message& message) {
  Count(&sent_, message.header.type, BytesOf(message));
  if (IsAwaited(message)) ++counted_;
}

// The type may be of no message that there is, where no gate has looked at it.
void Link::Count(Counts* counts, MessageType type, size_t more) {
  const auto index = static_cast<size_t>(type);
  if (index < kMessageTypes) (*counts)[index] += more;
}

void Link::DispatchAll(Batch* batch) {
  if (batch->empty()) return;
  const size_t inside = batch->message_bytes();
  Message message = batch->Take();
  if (message.header.type == MessageType::kBatch) {
    Count(&sent_, MessageType::kBatch, BytesOf(message) - inside);
  }
  Dispatch(&message);
}

void Link::AddTo(Traffic* traffic) const {
  for (size_t type = 0; type < kMessageTypes; ++type) {
    traffic->sent[type] += sent_[type];
    traffic->received[type] += received_[type];
    traffic->messages_sent[type] += messages_sent_[type];
    traffic->messages_received[type] += messages_received_[type];
  }
}

void Link::SendSign(const Message& message) {
  if (unheard_ >= kMostSigns) return;
  if (unheard_ >= kManySigns && ++signs_ready_ % kOfSigns != 0) return;
  SendControl(message);
}

void Link::StockLeaves(int64_t bytes) {
  stock_leaving_ += bytes;
  if (bytes > 0) SendControl(ControlMessage(MessageType::kCredit));
}

void Link::Receive(Message received, const std::function<void(const Message&)>& act) {
  const double now = Now();
  signs_.Heard(now);
  ++unanswered_;
  const bool is_batch = received.header.type == MessageType::kBatch;
  if (is_batch || IsOfRound(received.header.type)) moved_ = now;
  if (unheard_.exchange(0) >= kMostUnheard) SendWhatFits();
  Count(&messages_received_, received.header.type, 1);
  if (received.header.checksum != 0) checks_ = true;
  if (received.header.type == MessageType::kCredit) {
    signs_.Announced(StockOf(received), AnnouncementOf(received));
    lost_.Told(CountIn(received), now);
  }
  // What may be kept for long is copied, so that its block of memory becomes free.
  if (!IsReadInRound(received)) received.payload = Kept(received);
  received.payload_is_ours |= !IsReadInRound(received);
  size_t unread = 0;
  if (is_batch) {
    TakeCredit(received.header.credit);  // of the messages in it none has its own
    Batch::Contents inside = Batch::Read(received);
    size_t around = BytesOf(received);
    for (Message& message : inside.messages) {
      around -= BytesOf(message);
      if (message.place) Fetch(&message);
      if (gate_ != nullptr && !gate_->Admits(message)) {
        NoteArrival(message);
      } else {
        TakeForLink(message);
        if (BecomesWhole(&message)) act(message);
      }
      message.payload = Buffer();  // its block is free before credit for it leaves
    }
    Count(&received_, MessageType::kBatch, around);
    unread = inside.unread;
    // No less than messages there have taken of the window, but for places.
    taken_ += static_cast<uint32_t>(unread);
    if (unread > 0) lost_.GiveUp();
  } else {
    TakeForLink(received);
    TakeCredit(received.header.credit);
    if (BecomesWhole(&received)) act(received);
  }
  Acknowledge();
  if (unread > 0) Batch::Refuse(received, unread);
}

void Link::TakeRefused(const Message& refused) {
  if (refused.job != job_) return;
  NoteArrival(refused);
  TakeCredit(refused.header.credit);
  Acknowledge();
}

void Link::NoteArrival(const Message& message) {
  if (IsBounded(message)) taken_ += static_cast<uint32_t>(Weight(message));
  if (IsAwaited(message)) lost_.Came();
}

void Link::TakeForLink(const Message& message) {
  const Header& header = message.header;
  Count(&received_, header.type, BytesOf(message));
  NoteArrival(message);
  if (IsBounded(message) && Records()) recorder_->Record(EventOf(EventKind::kReceived, message));
  if (header.type == MessageType::kPing) SendControl(PongMessage(message, NowInNanoseconds()));
  if (header.type == MessageType::kPong) OnPong(message);
}

// False for all parts of a message but the last to come, which becomes the message.
bool Link::BecomesWhole(Message* message) {
  const Header& header = message->header;
  return message->payload.size == header.whole || assemblies_.Add(message);
}

// Of a total that another has overtaken nothing is new. More than is under way says nothing of the
// link: so much has not left, and may not be taken for received once it has.
void Link::TakeCredit(uint32_t total) {
  const auto more = static_cast<int32_t>(total - credited_);
  const size_t credit = more > 0 ? std::min<size_t>(more, queue_.in_flight()) : 0;
  if (credit == 0) return;
  credited_ += static_cast<uint32_t>(credit);
  if (Records()) {
    Event event;
    event.kind = EventKind::kAcknowledged;
    event.peer = static_cast<int16_t>(peer_);
    event.bytes = static_cast<uint32_t>(credit);
    recorder_->Record(event);
  }
  if (estimator_) estimator_->Acknowledged(peer_, credit, Now());
  queue_.Release(credit);
  SendWhatFits();
}

void Link::Acknowledge() {
  const bool carried = data_carries_credit_ && queue_.size() > 0;
  if (unanswered_ < kMostUnheard / 2 && (owed() <= withheld_ || carried)) return;
  SendControl(ControlMessage(MessageType::kCredit));
}

void Link::SendWhatFits() {
  const Outlet::Way way(&outlet_);
  Batch batch;
  bool of_data = true;
  Message message;
  while (way.open() && unheard_ < kMostUnheard && queue_.TryPop(&message)) {
    if (on_send_ && message.header.offset == 0) on_send_(message);
    CountSent(message);
    const bool is_data = IsBounded(message);
    if (is_data && Records()) recorder_->Record(EventOf(EventKind::kSent, message));
    const bool small = Batch::IsSmall(message) || Put(&message);
    // What overtakes data in the receiver's inbox does not wait there among it.
    if (!small || is_data != of_data || !batch.HasRoomFor(message)) DispatchAll(&batch);
    of_data = is_data;
    small ? batch.Add(std::move(message)) : Dispatch(&message);
  }
  if (way.open()) DispatchAll(&batch);
}

// Whether a whole payload now lies where the peer finds it. With checksums it stays in the message,
// which has one of its own only outside a batch.
bool Link::Put(Message* message) {
  const bool is_whole = message->payload.size == message->header.whole;
  return PutsPayloads() && is_whole && transport_->Put(message);
}

void Link::Fetch(Message* message) {
  transport_->Fetch(message);
  if (IsReadInRound(*message)) return;
  message->payload = Kept(*message);
  message->payload_is_ours = true;
}

// Only while nothing is under way does an answer's time tell the distance and not the queue's
// length.
void Link::Measure() {
  if (!estimator_ && !Records()) return;
  if (Now() - pinged_ < kSecondsBetweenPings || !queue_.Idle()) return;
  Ping();
}

// One at a time, so that it is known which answer is to come.
void Link::Ping() {
  const int64_t time = NowInNanoseconds();
  int64_t last = ping_;
  if (last != 0 && time - last < kLongestPing) return;
  if (!ping_.compare_exchange_strong(last, time)) return;
  pinged_ = Now();
  SendControl(PingMessage(time));
}

void Link::OnPong(const Message& pong) {
  ping_ = 0;
  const int64_t now = NowInNanoseconds();
  if (estimator_) estimator_->RoundTrip(peer_, (now - TimeOfPing(pong)) * 1e-9);
  if (Records()) {
    Event event;
    event.kind = EventKind::kClock;
    event.peer = static_cast<int16_t>(peer_);
    event.key = TimeOfPong(pong);
    event.begin = TimeOfPing(pong);
    event.end = now;
    recorder_->Record(event);
  }
  if (++first_pings_ < kFirstPings && queue_.Idle()) Ping();
}

bool FollowWindow(const Message& announcement, uint64_t* latest,
                  const std::vector<std::unique_ptr<Link>>& links) {
  if (WindowNumberOf(announcement) <= *latest) return false;
  const Window window = Window::Unpack(announcement.text);
  *latest = WindowNumberOf(announcement);
  for (auto& link : links) link->SetWindow(window);
  return true;
}

std::string LostMessagesOf(const std::string& role, const std::map<int, std::string>& hosts,
                           const std::vector<std::unique_ptr<Link>>& links, double seconds) {
  if (PsLiteResends()) return "";
  const double now = Now();
  std::set<int> peers;
  int lost = 0;
  for (const auto& host : hosts) {
    const int of_peer = links[host.first]->Lost(now, seconds);
    if (of_peer > 0) peers.insert(host.first);
    lost += of_peer;
  }
  if (peers.empty()) return "";
  for (const auto& link : links) {
    if (now - link->moved() <= seconds) return "";
  }
  return std::to_string(lost) + (lost == 1 ? " message" : " messages") + " of " + Who(role, peers) +
         " did not arrive within " + Seconds(seconds) +
         ", although later signs of life did: a connection was reset on its way" +
         Where(role, peers, hosts);
}

}  // namespace kvstore_ext
