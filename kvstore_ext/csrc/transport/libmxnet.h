// The functions of libmxnet.so that the lane calls, found at run time in the library that Python's
// mxnet has loaded. So building needs neither mxnet nor its headers, and one binary serves the CPU
// and the CUDA packages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ps {
struct Message;
struct Meta;
}  // namespace ps

namespace kvstore_ext {

using NDArrayHandle = void*;

// MXNet's number of the CPU among devices, and DLPack's; memory that is pinned for a GPU has
// another one.
constexpr int kCpuDevice = 1;

// The property that gives an operation of the engine's a thread which computing does not occupy.
constexpr int kCpuPrioritized = 3;

// An engine operation's way to say that it has ended; laid out as mxnet's CallbackOnComplete.
struct OnComplete {
  void (*callback)(void* engine, void* param, const void* dmlc_error);
  void* engine;
  void* param;
};

struct LibMXNet {
  // Pointers to C++ members take the object as their first argument (Itanium ABI).
  void* (*postoffice)();
  int (*van_send)(void* van, const ps::Message& message);
  void (*van_pack_meta)(void* van, const ps::Meta& meta, char** buffer, int* size);
  void (*van_unpack_meta)(void* van, const char* buffer, int size, ps::Meta* meta);
  void (*customer_create)(void* customer, int app_id, int customer_id,
                          const std::function<void(const ps::Message&)>& handler);
  void (*customer_destroy)(void* customer);
  void (*chunk_reorder)(void* chunk);  // null where the library was built without oneDNN

  const char* (*last_error)();
  int (*engine_push)(void (*function)(void* run_context, void* on_complete, void* param),
                     void* param, void (*deleter)(void* param), const void* context,
                     NDArrayHandle* reads, int read_count, NDArrayHandle* writes, int write_count,
                     const void* property, int priority, const char* name, bool wait);
  int (*watch_operators)(void* cached_op,
                         void (*watcher)(const char* name, const char* type, NDArrayHandle output),
                         bool inputs_too);
  int (*watch_executor)(void* executor,
                        void (*watcher)(const char* name, NDArrayHandle output, void* param),
                        void* param, bool inputs_too);
  int (*array_context)(NDArrayHandle array, int* device, int* number);  // 0, without memory
  int (*wait_to_read)(NDArrayHandle array);
  int (*wait_for_all)();
  int (*shallow_copy)(NDArrayHandle array, NDArrayHandle* copy);
  int (*array_free)(NDArrayHandle array);
  int (*to_dlpack)(NDArrayHandle array, void** tensor);
  int (*free_dlpack)(void* tensor);
  int (*from_dlpack)(void* tensor, bool transient, NDArrayHandle* array);
  int (*array_shape)(NDArrayHandle array, int* dimensions, const int64_t** shape);
  int (*array_dtype)(NDArrayHandle array, int* dtype);
  int (*array_storage)(NDArrayHandle array, int* storage);  // 0: dense

  // Binds the functions and checks that ps-lite's structures lie as we declare them. Throws
  // std::runtime_error naming what is missing or differs. Later calls return the first result.
  static const LibMXNet& Load(const std::string& path);

  // The library that Load found; throws std::logic_error before.
  static const LibMXNet& Get();

  // Throws std::runtime_error with MXNet's message unless a call's status is 0.
  static void Check(int status);
};

}  // namespace kvstore_ext
