// ps-lite's structures, declared anew because the package mxnet ships no header of them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/buffer.h"

#if _GLIBCXX_USE_CXX11_ABI
#error "libmxnet.so uses the old std::string: compile with -D_GLIBCXX_USE_CXX11_ABI=0"
#endif

// Only classes without hash maps are declared: libmxnet's compiler, GCC 4.8, lays those out
// differently. LibMXNet::Load checks the layout of Meta at run time.
namespace ps {

constexpr int kEmpty = std::numeric_limits<int>::max();

struct Node {
  int role = 0;
  int id = kEmpty;
  int customer_id = 0;
  std::string hostname;
  int port = kEmpty;
  bool is_recovery = false;
};

struct Control {
  int cmd = 0;
  std::vector<Node> node;
  int barrier_group = 0;
  uint64_t msg_sig = 0;
};

struct Meta {
  int head = kEmpty;
  int app_id = kEmpty;
  int customer_id = kEmpty;
  int timestamp = kEmpty;
  int sender = kEmpty;
  int recver = kEmpty;
  bool request = false;
  bool push = false;
  bool pull = false;
  bool simple_app = false;
  std::string body;
  std::vector<int> data_type;
  Control control;
  int data_size = 0;
  int priority = 0;
};

struct Message {
  Meta meta;
  std::vector<kvstore_ext::Buffer> data;  // as SArray<char>
};

}  // namespace ps
