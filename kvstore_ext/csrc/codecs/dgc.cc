#include "codecs/dgc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codecs/bracket.h"
#include "codecs/dgc_encoder.h"
#include "support/float16.h"
#include "support/wire.h"

namespace kvstore_ext {
namespace {

constexpr char kName[] = "dgc";
constexpr size_t kBlock = 65536;
constexpr double kFirstRatio = 0.25;
constexpr size_t kElementBytes = sizeof(uint16_t) + sizeof(float);

size_t EncodedBytes(size_t elements, size_t count) {
  return sizeof(uint32_t) * DivideUp(elements, kBlock) + kElementBytes * count;
}

Subset FindNonZero(const float* values, size_t elements) {
  constexpr Bracket kNone = {1, 0};
  return Divide(values, nullptr, 0, elements, kNone).above;
}

std::shared_ptr<const Codec> Make(const MethodValues& values, int workers) {
  DgcOptions options;
  options.ratio = values.Number("ratio");
  options.warmup = values.Whole("warmup_rounds");
  options.stages = values.Whole("warmup_stages");
  options.clip = values.Number("clip_norm");
  options.masking = values.Flag("momentum_masking");
  return std::make_shared<Dgc>(options, workers);
}

}  // namespace

CodecMethod Dgc::Method() {
  return {
      kName,
      {MethodOption::NumberAbove("ratio", 0, 1), MethodOption::Whole("warmup_rounds", 0, 0x1p31),
       MethodOption::Whole("warmup_stages", 1, 1000), MethodOption::Number("clip_norm", 0),
       MethodOption::Flag("momentum_masking")},
      Make};
}

Dgc::Dgc(const DgcOptions& options, int workers)
    : options_(options),
      clip_norm_(options.clip > 0 ? options.clip / std::sqrt(static_cast<double>(workers))
                                  : std::numeric_limits<double>::infinity()) {}

std::unique_ptr<KeyEncoder> Dgc::MakeEncoder(size_t elements) const {
  return std::make_unique<DgcEncoder>(std::shared_ptr<const Dgc>(shared_from_this(), this),
                                      elements);
}

bool Dgc::warms_up() const { return options_.warmup > 0 && options_.ratio < kFirstRatio; }

double Dgc::Ratio(uint64_t round) const {
  if (!warms_up() || round > options_.warmup) return options_.ratio;
  const uint64_t stage = (std::max<uint64_t>(round, 1) - 1) * options_.stages / options_.warmup;
  return kFirstRatio *
         std::pow(options_.ratio / kFirstRatio, static_cast<double>(stage) / options_.stages);
}

double Dgc::bytes_per_element() const {
  constexpr double kLeast = 0.02;  // smaller messages are not worth longer slices
  return std::max(kLeast, kElementBytes * (warms_up() ? kFirstRatio : options_.ratio));
}

Buffer Dgc::EncodeSelected(const float* values, size_t elements, const Subset& selected,
                           size_t offset) const {
  const size_t count = selected.CountIn(offset, offset + elements);
  Buffer bytes = Buffer::Allocate(EncodedBytes(elements, count));
  char* counts = bytes.data.get();
  char* index = counts + sizeof(uint32_t) * DivideUp(elements, kBlock);
  char* number = index + sizeof(uint16_t) * count;
  for (size_t begin = 0; begin < elements; begin += kBlock, counts += sizeof(uint32_t)) {
    const size_t first = offset + begin;
    const size_t end = first + std::min(kBlock, elements - begin);
    const char* const before = index;
    selected.ForEachIn(first, end, [&](size_t element) {
      Store(index, static_cast<uint16_t>(element - first));
      Store(number, values[element]);
      index += sizeof(uint16_t);
      number += sizeof(float);
    });
    Store(counts, static_cast<uint32_t>((index - before) / sizeof(uint16_t)));
  }
  return bytes;
}

Buffer Dgc::Encode(const float* values, size_t elements, float, const Draws&) const {
  return EncodeSelected(values, elements, FindNonZero(values, elements), 0);
}

Buffer Dgc::EncodeSum(const float* sum, size_t elements, float, const Draws&) const {
  const Subset found = FindNonZero(sum, elements);
  if (EncodedBytes(elements, found.count()) >= sizeof(float) * elements) return Buffer();
  return EncodeSelected(sum, elements, found, 0);
}

void Dgc::AddTo(float* sum, size_t elements, const Buffer& bytes) const {
  const size_t blocks = DivideUp(elements, kBlock);
  const char* counts = bytes.data.get();
  if (bytes.size < EncodedBytes(elements, 0)) {
    CheckSize(kName, bytes, elements, EncodedBytes(elements, 0));
  }
  size_t total = 0;
  for (size_t i = 0; i < blocks; ++i) total += Load<uint32_t>(counts + sizeof(uint32_t) * i);
  CheckSize(kName, bytes, elements, EncodedBytes(elements, total));
  const char* index = counts + sizeof(uint32_t) * blocks;
  const char* number = index + sizeof(uint16_t) * total;
  for (size_t begin = 0; begin < elements; begin += kBlock, counts += sizeof(uint32_t)) {
    const size_t length = std::min(kBlock, elements - begin);
    size_t least = 0;
    for (auto left = Load<uint32_t>(counts); left > 0; --left) {
      const size_t element = Load<uint16_t>(index);
      if (element < least || element >= length) {
        RefuseBytes(kName, "index " + std::to_string(begin + element) + ", out of order or range,");
      }
      const auto value = Load<float>(number);
      if (MagnitudeBits(value) >= kNotFinite)
        RefuseBytes(kName, "a number of " + std::to_string(value));
      sum[begin + element] += value;
      least = element + 1;
      index += sizeof(uint16_t);
      number += sizeof(float);
    }
  }
}

}  // namespace kvstore_ext
