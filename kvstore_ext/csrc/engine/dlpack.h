// DLPack's structures, by which MXNet takes memory of ours as an NDArray without a copy, and tells
// where its own lies.
#pragma once

#include <cstdint>

#include "support/buffer.h"
#include "support/dtype.h"
#include "transport/libmxnet.h"

namespace kvstore_ext {

// As dlpack.h of DLPack 0.2, which MXNet 1.9.1 was built with, declares DLManagedTensor.
struct DLManagedTensor {
  void* data;
  int device_type;
  int device_id;
  int dimensions;
  uint8_t type_code;
  uint8_t type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};

// A flat tensor over a buffer; its deleter lets go of the buffer.
inline DLManagedTensor* ToDLPack(const Buffer& buffer, DType dtype) {
  struct Holder {
    DLManagedTensor tensor;
    Buffer buffer;
    int64_t shape;
  };
  auto* holder = new Holder{{}, buffer, static_cast<int64_t>(buffer.size / SizeOf(dtype))};
  constexpr uint8_t kFloat = 2;
  holder->tensor = {holder->buffer.data.get(),
                    kCpuDevice,
                    0,
                    1,
                    kFloat,
                    static_cast<uint8_t>(SizeOf(dtype) * 8),
                    1,
                    &holder->shape,
                    nullptr,
                    0,
                    holder,
                    [](DLManagedTensor* tensor) { delete static_cast<Holder*>(tensor->manager); }};
  return &holder->tensor;
}

// Where the elements lie of the array of which MXNet has made a tensor; frees that.
inline void* TakeAddress(void* tensor) {
  void* address = static_cast<DLManagedTensor*>(tensor)->data;
  LibMXNet::Get().free_dlpack(tensor);
  return address;
}

}  // namespace kvstore_ext
