// ps-lite's numbers for the processes of a job.
#pragma once

namespace kvstore_ext {

constexpr int kSchedulerId = 1;
constexpr int ServerId(int rank) { return rank * 2 + 8; }
constexpr int WorkerId(int rank) { return rank * 2 + 9; }

constexpr bool IsServerId(int id) { return id >= ServerId(0) && id % 2 == 0; }
constexpr bool IsWorkerId(int id) { return id >= WorkerId(0) && id % 2 == 1; }

}  // namespace kvstore_ext
