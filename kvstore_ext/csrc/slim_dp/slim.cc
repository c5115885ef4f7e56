#include "slim_dp/slim.h"

#include <stdexcept>

#include "support/random.h"
#include "transport/gate.h"

namespace kvstore_ext {
namespace {

constexpr char kBeforeValues[] = " values: ";

}  // namespace

const std::vector<MethodOption>& SlimOptions::Table() {
  static const std::vector<MethodOption> options = {
      MethodOption::NumberAbove("alpha", 0, 1),
      MethodOption::Number("beta", 0, 1),
      MethodOption::Whole("q", 1, 0x1p31),
      MethodOption::Whole("core_delay", 0, 0x1p31),
      MethodOption::NumberAbove("server_lr", 0),
      MethodOption::Seed(),
      MethodOption::Choice("explorer", {"seed", "keys"}),
      MethodOption::Choice("explorer_mean", {"all", "pushed"}),
  };
  return options;
}

SlimOptions SlimOptions::Parse(const std::string& specification) {
  const size_t end = specification.find(kBeforeValues);
  const MethodValues values(specification.substr(0, end), Table());
  SlimOptions options;
  options.share = values.Number("alpha");
  options.core_share = values.Number("beta");
  options.rounds_per_selection = values.Whole("q");
  options.delay = values.Whole("core_delay");
  options.server_rate = values.Number("server_lr");
  options.seed = values.Whole("seed");
  options.sends_indices = values.Word("explorer") == "keys";
  options.mean_of_pushed = values.Word("explorer_mean") == "pushed";
  if (end != std::string::npos) {
    options.values = specification.substr(end + sizeof kBeforeValues - 1);
  }
  if (options.core_share > options.share) {
    throw std::invalid_argument("compression '" + specification + "': beta must be at most alpha");
  }
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

Subset SubsetOf(size_t elements, const Buffer& bytes) {
  try {
    return Subset(elements, bytes);
  } catch (const std::invalid_argument& error) {
    throw Unfit(error.what());
  }
}

uint64_t ExplorerStream(const SlimOptions& options, int rank, uint64_t key, uint64_t round,
                        uint64_t offset) {
  return Mix(StreamOf(options.seed, static_cast<uint32_t>(rank), key, round) ^ offset);
}

}  // namespace kvstore_ext
