#include "security/pslite_meta.h"

namespace kvstore_ext {
namespace {

constexpr unsigned kNumber = 0;  // kinds of fields
constexpr unsigned kBytes = 2;
constexpr size_t kLongestNumber = 10;  // bytes, of 7 bits each
constexpr size_t kMostNodes = 65536;
// Nothing that a job says comes near it. ps-lite counts bytes in an int, and ends the process where
// that is negative.
constexpr size_t kMostOfFrame = size_t{64} << 20;

// The fields of one protocol buffer, from its front.
class Fields {
 public:
  explicit Fields(std::string_view text) : left_(text) {}

  // Goes on to the next field; false at the end, and where there is none that could be read.
  bool Next() {
    if (left_.empty() || !ok_) return false;
    uint64_t tag = 0;
    if (!Take(&tag) || tag >= 8 * 64) return ok_ = false;
    field_ = static_cast<unsigned>(tag / 8);
    kind_ = static_cast<unsigned>(tag % 8);
    if (kind_ == kNumber) return Take(&number_);
    return kind_ == kBytes ? TakeText() : (ok_ = false);
  }

  // Whether it is of this kind, and comes for the first time.
  bool Is(unsigned kind) {
    const uint64_t bit = uint64_t{1} << field_;
    const bool first = (seen_ & bit) == 0;
    seen_ |= bit;
    return kind_ == kind && first;
  }

  bool Has(unsigned field) const { return (seen_ >> field & 1) != 0; }
  bool ok() const { return ok_; }
  unsigned field() const { return field_; }
  unsigned kind() const { return kind_; }
  std::string_view text() const { return text_; }
  // Protocol buffers read any number but 0 as true, also one whose 32 lower bits are 0.
  bool IsTruth() const { return number_ <= 1; }
  int32_t Int32() const { return static_cast<int32_t>(static_cast<uint32_t>(number_)); }

 private:
  bool Take(uint64_t* number) {
    *number = 0;
    for (size_t i = 0; i < left_.size() && i < kLongestNumber; ++i) {
      const auto byte = static_cast<uint8_t>(left_[i]);
      *number |= uint64_t{byte & 127U} << (7 * i);
      if (byte < 128) {
        left_.remove_prefix(i + 1);
        return true;
      }
    }
    return ok_ = false;
  }

  bool TakeText() {
    uint64_t size = 0;
    if (!Take(&size) || size > left_.size()) return ok_ = false;
    text_ = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

  std::string_view left_;
  bool ok_ = true;
  unsigned field_ = 0;
  unsigned kind_ = 0;
  uint64_t number_ = 0;
  std::string_view text_;
  uint64_t seen_ = 0;
};

bool ReadNode(std::string_view text, PsLiteNode* node) {
  Fields fields(text);
  while (fields.Next()) {
    if (!fields.Is(fields.field() == 3 ? kBytes : kNumber)) return false;
    switch (fields.field()) {
      case 1: node->role = fields.Int32(); break;
      case 2: node->id = fields.Int32(); break;
      case 3: node->hostname = fields.text(); break;
      case 4: node->port = fields.Int32(); break;
      case 5:   // whether it comes again
      case 10:  // its customer
        break;
      default: return false;
    }
  }
  return fields.ok() && fields.Has(1);
}

bool ReadControl(std::string_view text, PsLiteMeta* meta) {
  Fields fields(text);
  while (fields.Next()) {
    if (fields.field() == 2) {
      if (fields.kind() != kBytes || meta->nodes.size() == kMostNodes) return false;
      if (!ReadNode(fields.text(), &meta->nodes.emplace_back())) return false;
      continue;
    }
    if (!fields.Is(kNumber)) return false;
    switch (fields.field()) {
      case 1: meta->command = static_cast<PsLiteCommand>(fields.Int32()); break;
      case 3: meta->barrier_group = fields.Int32(); break;
      case 4: break;  // of which message the arrival is acknowledged
      default: return false;
    }
  }
  return fields.ok() && fields.Has(1);
}

// Numbers of parts' types, one behind the other.
bool CountNumbers(std::string_view text, size_t* count) {
  size_t length = 0;
  for (const char byte : text) {
    if (++length > kLongestNumber) return false;
    if (static_cast<uint8_t>(byte) >= 128) continue;
    ++*count;
    length = 0;
  }
  return length == 0;
}

}  // namespace

bool PsLiteMeta::Read(std::string_view frame) {
  if (frame.size() > kMostOfFrame) return false;
  Fields fields(frame);
  while (fields.Next()) {
    const unsigned field = fields.field();
    if (!fields.Is(field == 2 || field == 3 || field == 9 ? kBytes : kNumber)) return false;
    switch (field) {
      case 3:
        if (!ReadControl(fields.text(), this)) return false;
        break;
      case 4:
        if (!fields.IsTruth()) return false;
        request = fields.Int32() == 1;
        break;
      case 7: app = fields.Int32(); break;
      case 8: timestamp = fields.Int32(); break;
      case 9:
        if (!CountNumbers(fields.text(), &data_types)) return false;
        break;
      case 10: customer = fields.Int32(); break;
      case 1:   // head
      case 2:   // body
      case 5:   // whether it pushes
      case 6:   // whether it is a command of MXNet's
      case 11:  // bytes that follow
      case 12:  // whether it pulls
      case 13:  // priority
        break;
      default: return false;
    }
  }
  return fields.ok();
}

}  // namespace kvstore_ext
