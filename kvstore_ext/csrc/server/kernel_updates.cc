#include "server/kernel_updates.h"

#include <stdexcept>
#include <string>

namespace kvstore_ext {
namespace {

template <typename T>
T* Elements(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.data.get());
}

// Has `step` overwrite the weights in float32, wherever they are.
template <typename Step>
void Overwrite(const Update& update, float* master, const Step& step) {
  const DType expected = master == nullptr ? DType::kFloat32 : DType::kFloat16;
  if (update.dtype != expected) {
    throw std::invalid_argument("no kernel updates key " + update.name +
                                ": it has neither float32 nor float16 with weights in float32");
  }
  step(Elements<const float>(update.gradient),
       master == nullptr ? Elements<float>(update.value) : master);
  if (master != nullptr) {
    kernels().cast_to_half(master, update.elements, Elements<uint16_t>(update.value));
  }
}

}  // namespace

void Compute(const SgdUpdate& how, const Update& update) {
  Overwrite(update, how.master, [&](const float* gradient, float* weights) {
    kernels().step_sgd(how.step, gradient, how.velocity, weights, update.elements);
  });
}

void Compute(const AdamUpdate& how, const Update& update) {
  Overwrite(update, how.master, [&](const float* gradient, float* weights) {
    kernels().step_adam(how.step, gradient, how.mean, how.variance, weights, update.elements);
  });
}

}  // namespace kvstore_ext
