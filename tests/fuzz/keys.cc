#include "keys.h"

#include <cstring>
#include <map>
#include <utility>

#include "codecs/codec.h"
#include "slim_dp/explorer.h"
#include "slim_dp/slim.h"
#include "support/wire.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

std::vector<float> Numbers(size_t elements, Input* input) {
  std::vector<float> numbers(elements);
  for (float& number : numbers) {
    if (input->empty()) break;
    number = static_cast<float>(input->Take<int8_t>()) / 4;
  }
  return numbers;
}

// Reading a method's text takes longer than encoding a few numbers.
const Codec& CodecOf(const std::string& method, int workers) {
  static std::map<std::pair<std::string, int>, std::shared_ptr<const Codec>> codecs;
  std::shared_ptr<const Codec>& codec = codecs[{method, workers}];
  if (codec == nullptr) codec = MakeCodec(method, workers);
  return *codec;
}

const SlimOptions& OptionsOf(const std::string& method) {
  static std::map<std::string, SlimOptions> options;
  const auto known = options.find(method);
  if (known != options.end()) return known->second;
  return options.emplace(method, SlimOptions::Parse(method)).first->second;
}

std::string TextOf(const Buffer& bytes) { return std::string(bytes.data.get(), bytes.size); }

// So many numbers, of which few are given.
std::string Encoded(const std::string& method, const Sent& sent, size_t count, Input* input) {
  const Codec& codec = CodecOf(method, sent.workers);
  const std::vector<float> values = Numbers(std::min(count, input->Below(16)), input);
  std::vector<float> all(count);
  std::copy(values.begin(), values.end(), all.begin());
  const float scaler = codec.Scaler(all.data(), count);
  const Draws draws(0, static_cast<uint32_t>(sent.rank), sent.key, sent.round);
  const Buffer bytes = sent.is_sum ? codec.EncodeSum(all.data(), count, scaler, draws)
                                   : codec.Encode(all.data(), count, scaler, draws);
  return TextOf(bytes);
}

std::string SlimUpdate(const Sent& sent, Input* input) {
  const SlimOptions& options = OptionsOf(sent.kind.method);
  const bool is_told = sent.core != nullptr && sent.core->elements() == sent.elements;
  const Subset core = is_told ? *sent.core : Subset(sent.elements, options.core_share == 1);
  UpdateHeader header;
  header.signature = core.signature();
  header.round = sent.round;
  header.selection = static_cast<uint32_t>(options.SelectionOf(sent.round));
  header.explorers = static_cast<uint32_t>(
      input->Below(1 + std::min<size_t>(255, core.elements() - core.count())));
  header.rank = static_cast<uint32_t>(sent.rank);
  header.full = options.IsFull(sent.round) ? 1 : 0;
  const Subset together =
      Explore(core, header.explorers, ExplorerStream(options, sent.rank, sent.key, sent.round, 0));
  const size_t count = header.full != 0 ? sent.elements : together.count();
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += options.values.empty() ? std::string(count * sizeof(float), '\1')
                                  : Encoded(options.values, sent, count, input);
  if (!options.sends_indices) return bytes;
  together.ForEach([&](size_t i) {
    if (core.Has(i)) return;
    const auto index = static_cast<uint32_t>(i);
    bytes.append(reinterpret_cast<const char*>(&index), sizeof index);
  });
  return bytes;
}

// The numbers of what was communicated, whose count the input tells, or the update does.
std::string SlimAnswer(const Sent& sent, Input* input) {
  const size_t count = input->Below(256);
  const size_t header = sizeof(UpdateHeader);
  const bool as_pushed = count >= 240 && sent.of_update > header;
  return std::string(as_pushed ? sent.of_update - header : count * sizeof(float), '\2');
}

}  // namespace

void ToldCores::Hear(const Message& told, size_t elements) {
  const bool has_core = told.header.type == MessageType::kMethod && told.payload.size > 0;
  if (!has_core) return;
  try {
    cores_.insert_or_assign(told.header.round, SubsetOf(elements, told.payload));
  } catch (const Unfit&) {
    // Of another key, which the input has given this one's number.
  }
}

const Subset* ToldCores::Of(const KeyKind& kind, uint64_t round) const {
  if (!IsSlim(kind)) return nullptr;
  const auto found = cores_.find(OptionsOf(kind.method).SelectionOf(round));
  return found == cores_.end() ? nullptr : &found->second;
}

SliceDeclaration Declared(const KeyKind& kind, uint64_t elements) {
  SliceDeclaration declaration;
  declaration.elements = elements;
  declaration.dtype = kind.dtype;
  declaration.name = "key";
  declaration.method = kind.method;
  return declaration;
}

Buffer PlainPayload(const Sent& sent, Input* input) {
  std::string bytes(sent.elements * SizeOf(sent.kind.dtype), '\0');
  input->Copy(bytes.data(), std::min(bytes.size(), input->Below(64)));
  return Received(bytes);
}

Buffer EncodedPayload(const Sent& sent, Input* input) {
  const std::string method = sent.kind.method;
  std::string bytes;
  if (IsSlim(sent.kind)) {
    bytes = sent.is_sum ? SlimAnswer(sent, input) : SlimUpdate(sent, input);
  } else if (Declared(sent.kind, 0).has_codec()) {
    bytes = Encoded(method, sent, sent.elements, input);
  }
  const size_t over = input->Below(256);
  if (over >= 128) input->Copy(bytes.data(), std::min(bytes.size(), over - 128));
  return Received(bytes);
}

Message Changed(Message message, Input* input) {
  const size_t damage = input->Below(256);
  auto* header = reinterpret_cast<char*>(&message.header);
  if (damage < 48) {
    input->Copy(header + damage, 1);
  } else if (damage < 56) {
    const auto number = input->Take<uint64_t>();
    switch (damage % 3) {
      case 0: message.header.key = number; break;
      case 1: message.header.round = number; break;
      default: message.header.credit = static_cast<uint32_t>(number);
    }
  } else if (damage < 64) {
    message.payload = Received(input->Text(input->Below(256)));
    message.header.whole = static_cast<uint32_t>(message.payload.size);
  } else if (damage < 72) {
    message.text = input->Text(input->Below(128));
  } else if (damage < 80 && !message.text.empty()) {
    const size_t at = input->Below(256) % message.text.size();
    input->Copy(&message.text[at], std::min<size_t>(8, message.text.size() - at));
  }
  return message;
}

}  // namespace kvstore_ext
