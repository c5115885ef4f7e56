#include "slim.h"

#include <sstream>
#include <stdexcept>

#include "random.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "slim_dp";

}  // namespace

SlimOptions SlimOptions::Parse(const std::string& specification) {
  SlimOptions options;
  std::istringstream words(specification);
  words.imbue(std::locale::classic());
  std::string name;
  words >> name >> options.share >> options.core_share >> options.selection >> options.delay >>
      options.server_rate >> options.seed >> options.sends_indices;
  const bool right = !words.fail() && name == kName && options.core_share >= 0 &&
                     options.share >= options.core_share && options.share <= 1 &&
                     options.share > 0 && options.selection > 0;
  if (!right) {
    throw std::invalid_argument("'" + specification + "' is no specification of slim_dp");
  }
  std::getline(words >> std::ws, options.values);
  return options;
}

void CheckSlimType(const SliceDeclaration& declaration) {
  if (declaration.dtype == DType::kFloat32) return;
  throw std::invalid_argument("key " + declaration.name + " is of " + NameOf(declaration.dtype) +
                              "; slim_dp takes float32");
}

Message CoreMessage::Pack() const {
  Message message;
  message.header.type = MessageType::kMethod;
  message.header.encoding = refused ? Encoding::kSkipped : Encoding::kPlain;
  message.header.round = selection;
  message.payload = members;
  return message;
}

CoreMessage CoreMessage::Unpack(const Message& message) {
  const bool refused = message.header.encoding == Encoding::kSkipped;
  return {message.header.round, refused, message.payload};
}

uint64_t ExplorerStream(const SlimOptions& options, int rank, uint64_t key, uint64_t round,
                        uint64_t offset) {
  return Mix(StreamOf(options.seed, static_cast<uint32_t>(rank), key, round) ^ offset);
}

}  // namespace kvstore_ext
