#include "server/coded_sum.h"

#include "codecs/finite.h"
#include "keys/gradient_codec.h"

namespace kvstore_ext {
namespace {

std::shared_ptr<const Codec> CodecOf(const SliceContext& context) {
  CheckCompressible(context.declaration);
  return MakeCodec(context.declaration.method, context.workers);
}

}  // namespace

CodedSum::CodedSum(SliceContext given)
    : SumReduction(std::move(given),
                   [this](float* sum, const Buffer& bytes) {
                     codec_->AddTo(sum, context().declaration.elements, bytes);
                     scaler_ = codec_->ScalerOf(bytes);
                   }),
      codec_(CodecOf(context())) {}

void CodedSum::AcceptEncoded(const Message& message) {
  try {
    codec_->Check(context().declaration.elements, message.payload);
  } catch (const std::invalid_argument& error) {
    throw Unfit(error.what());
  }
  sum_.AddBytes(message.peer, message.payload);
}

void CodedSum::FinishSum(uint64_t round) {
  if (round > 0) return Encode(round);
  value_ = sum_.Take();
  encoding_ = Encoding::kPlain;
}

void CodedSum::MakePlain() {
  if (encoding_ == Encoding::kEncoded) {
    const size_t elements = context().declaration.elements;
    const Buffer wide = Buffer::Allocate(elements * sizeof(float));
    codec_->DecodeSum(reinterpret_cast<float*>(wide.data.get()), elements, value_);
    SetPlain(wide);
  }
  SumReduction::MakePlain();
}

void CodedSum::Encode(uint64_t round) {
  const SliceDeclaration& slice = context().declaration;
  const bool all_encoded = sum_.all_encoded();
  const Draws draws(codec_->seed(), Draws::kServer, context().name.first, earlier_rounds_ + round);
  double factor = TakeFactor();
  if (all_encoded && codec_->sums_are_votes()) factor = 1;  // a majority of those who have voted
  const Buffer sum = sum_.TakeWide(factor);
  auto* values = reinterpret_cast<float*>(sum.data.get());
  for (size_t i = 0; i < carried_over_.size(); ++i) values[i] += carried_over_[i];
  carried_over_.clear();
  value_ = Buffer();
  // Finite gradients may have a sum that is not, which says so as it does without compression.
  // Multiplied sums are none of those that codecs encode: levels, say, would not be whole.
  if (all_encoded && factor == 1 && AllFinite(DType::kFloat32, sum.data.get(), slice.elements)) {
    value_ = codec_->EncodeSum(values, slice.elements, scaler_, draws.From(slice.offset));
  }
  if (value_.data == nullptr) return SetPlain(sum);
  encoding_ = Encoding::kEncoded;
  if (!codec_->error_feedback() || !codec_->sums_lose()) return;
  std::vector<float> decoded(slice.elements);
  codec_->DecodeSum(decoded.data(), slice.elements, value_);
  carried_over_.resize(slice.elements);
  for (size_t i = 0; i < slice.elements; ++i) carried_over_[i] = values[i] - decoded[i];
}

void CodedSum::SetPlain(const Buffer& wide) {
  const SliceDeclaration& slice = context().declaration;
  encoding_ = Encoding::kPlain;
  value_ = wide;
  if (slice.dtype == DType::kFloat32) return;
  value_ = Buffer::Allocate(PlainBytes(slice.dtype, slice.elements));
  Narrow(slice.dtype, value_.data.get(), wide.data.get(), slice.elements);
}

void CodedSum::CarryOver(uint64_t rounds, uint64_t open_round, std::vector<float> values) {
  const SliceDeclaration& slice = context().declaration;
  if (!values.empty() && values.size() != slice.elements) {
    throw std::invalid_argument("slice " + std::to_string(context().name.second) + " of key " +
                                slice.name + " has " + std::to_string(slice.elements) +
                                " elements; got " + std::to_string(values.size()));
  }
  carried_over_ = std::move(values);
  earlier_rounds_ = rounds + 1 - open_round;
}

size_t CodedSum::held_bytes() const {
  return SumReduction::held_bytes() + carried_over_.size() * sizeof(float);
}

}  // namespace kvstore_ext
