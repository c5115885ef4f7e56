// The fixed part of a ps-lite message, as it is written: a protocol buffer of MXNet 1.9.1's
// meta.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace kvstore_ext {

// What ps-lite takes for "none" in a number of a process or a port.
constexpr int32_t kPsLiteNone = std::numeric_limits<int32_t>::max();

enum class PsLiteCommand {
  kNone = 0,
  kTerminate = 1,
  kAddNode = 2,
  kBarrier = 3,
  kAcknowledge = 4,
  kHeartbeat = 5,
};

struct PsLiteNode {
  int32_t role = 0;
  int32_t id = 0;
  int32_t port = 0;
  std::string hostname;

  bool operator==(const PsLiteNode& other) const {
    return role == other.role && id == other.id && port == other.port && hostname == other.hostname;
  }
};

// As much of it as tells what ps-lite will do.
struct PsLiteMeta {
  PsLiteCommand command = PsLiteCommand::kNone;
  std::vector<PsLiteNode> nodes;
  int32_t barrier_group = 0;
  bool request = false;
  int32_t app = kPsLiteNone;
  int32_t customer = kPsLiteNone;
  int32_t timestamp = kPsLiteNone;
  size_t data_types = 0;  // one of each of the parts that follow

  // Whether `frame` is what ps-lite writes: each field of meta.proto once at most, of its own kind,
  // the required ones there, and nothing else; and no more bytes and processes than a job has,
  // since each of these takes more memory here than bytes there. Protocol buffers may be written in
  // more ways, which no process of a job uses.
  bool Read(std::string_view frame);
};

}  // namespace kvstore_ext
