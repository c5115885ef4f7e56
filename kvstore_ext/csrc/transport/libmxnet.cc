#include "transport/libmxnet.h"

#include <dlfcn.h>

#include <memory>
#include <stdexcept>

#include "support/symbols.h"
#include "transport/pslite_layout.h"

namespace kvstore_ext {
namespace {

std::unique_ptr<LibMXNet> loaded;

constexpr const char* kNeeded =
    ": kvstore_ext needs mxnet 1.9.1 built with ps-lite (USE_DIST_KVSTORE), as its packages on "
    "PyPI are";

// Sends a message's fixed part through the library's own serialisation and back: if our declaration
// of the structure were wrong, some field would come out as another.
void CheckLayout(const LibMXNet& library) {
  ps::Meta sent;
  sent.head = 0x1234;
  sent.app_id = 7;
  sent.customer_id = 8;
  sent.timestamp = 9;
  sent.request = true;
  sent.push = false;
  sent.pull = true;
  sent.body = "layout";
  sent.data_type = {0, 1};
  sent.data_size = 55;
  sent.priority = -66;
  char* buffer = nullptr;
  int size = 0;
  library.van_pack_meta(nullptr, sent, &buffer, &size);
  ps::Meta received;
  library.van_unpack_meta(nullptr, buffer, size, &received);
  delete[] buffer;
  const bool same = received.head == sent.head && received.app_id == sent.app_id &&
                    received.customer_id == sent.customer_id &&
                    received.timestamp == sent.timestamp && received.request && !received.push &&
                    received.pull && received.body == sent.body &&
                    received.data_type == sent.data_type && received.priority == sent.priority &&
                    received.control.cmd == 0;
  if (!same) {
    throw std::runtime_error(
        "libmxnet.so lays out ps-lite's messages differently from mxnet 1.9.1, which "
        "kvstore_ext needs");
  }
}

}  // namespace

const LibMXNet& LibMXNet::Load(const std::string& path) {
  if (loaded) return *loaded;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    throw std::runtime_error("mxnet has not loaded " + path + " in this process");
  }
  auto mx = std::make_unique<LibMXNet>();
  const auto bind = [library](const char* symbol, auto** function) {
    Bind(library, "libmxnet.so", symbol, function, kNeeded);
  };
  bind("_ZN2ps10Postoffice3GetEv", &mx->postoffice);
  bind("_ZN2ps3Van4SendERKNS_7MessageE", &mx->van_send);
  bind("_ZN2ps3Van8PackMetaERKNS_4MetaEPPcPi", &mx->van_pack_meta);
  bind("_ZN2ps3Van10UnpackMetaEPKciPNS_4MetaE", &mx->van_unpack_meta);
  bind("_ZN2ps8CustomerC1EiiRKSt8functionIFvRKNS_7MessageEEE", &mx->customer_create);
  bind("_ZN2ps8CustomerD1Ev", &mx->customer_destroy);
  bind("MXGetLastError", &mx->last_error);
  bind("MXEnginePushAsyncND", &mx->engine_push);
  bind("MXCachedOpRegisterOpHook", &mx->watch_operators);
  bind("MXExecutorSetMonitorCallbackEX", &mx->watch_executor);
  bind("MXNDArrayGetContext", &mx->array_context);
  bind("MXNDArrayWaitToRead", &mx->wait_to_read);
  bind("MXNDArrayWaitAll", &mx->wait_for_all);
  bind("MXShallowCopyNDArray", &mx->shallow_copy);
  bind("MXNDArrayFree", &mx->array_free);
  bind("MXNDArrayToDLPack", &mx->to_dlpack);
  bind("MXNDArrayCallDLPackDeleter", &mx->free_dlpack);
  bind("MXNDArrayFromDLPackEx", &mx->from_dlpack);
  bind("MXNDArrayGetShapeEx64", &mx->array_shape);
  bind("MXNDArrayGetDType", &mx->array_dtype);
  bind("MXNDArrayGetStorageType", &mx->array_storage);
  mx->chunk_reorder = reinterpret_cast<void (*)(void*)>(
      dlsym(library, "_ZN5mxnet7NDArray5Chunk15Reorder2DefaultEv"));
  CheckLayout(*mx);
  loaded = std::move(mx);
  return *loaded;
}

const LibMXNet& LibMXNet::Get() {
  if (!loaded) throw std::logic_error("libmxnet.so has not been loaded yet");
  return *loaded;
}

void LibMXNet::Check(int status) {
  if (status != 0) throw std::runtime_error(Get().last_error());
}

}  // namespace kvstore_ext
