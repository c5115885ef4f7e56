// Which messages ps-lite can read in a process of a job. It ends the process, or writes elsewhere,
// by most others.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "security/pslite_meta.h"

namespace kvstore_ext {

// A message as ZeroMQ has brought it: who has sent it, its fixed part, and the parts that follow.
struct PsLiteFrames {
  std::string_view name;
  std::string_view meta;
  std::vector<size_t> data;  // bytes of each
};

enum class PsLiteRole { kServer, kWorker, kScheduler, kUnknown };

// The number that a name of ps-lite's says: "ps9" is worker 0, "ps8" server 0, "ps1" the scheduler.
// kPsLiteNone for others'.
int32_t PsLiteId(std::string_view name);

// For ps-lite's thread that receives.
class ExpectedMessages {
 public:
  // Whether the process has a customer of this app, and of this number: who takes messages.
  using HasCustomer = bool (*)(int32_t app, int32_t customer);

  // A host as ps-lite writes it, and a port.
  using Address = std::pair<std::string, int32_t>;

  // Of a process of this role, in a job of so many, 0 where that is not known, whose scheduler has
  // this address.
  ExpectedMessages(PsLiteRole role, int workers, int servers, HasCustomer has_customer,
                   Address scheduler = {})
      : role_(role),
        workers_(workers),
        servers_(servers),
        has_customer_(has_customer),
        scheduler_(std::move(scheduler)) {}

  // As the environment of launchers has it (DMLC_ROLE, DMLC_NUM_WORKER, DMLC_NUM_SERVER,
  // DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT).
  static ExpectedMessages FromEnvironment(HasCustomer has_customer);

  // Why ps-lite must not read a message, in a few words, or null where it may. `own` is the number
  // that this process has by now, or kPsLiteNone. What a job says once is remembered: who asks to
  // be added, and who there is.
  const char* WhyNot(const PsLiteFrames& frames, int32_t own);

 private:
  bool IsOfJob(int32_t id) const;
  bool Sends(int32_t sender, int32_t own) const;
  const char* WhyNoData(const PsLiteMeta& meta, const std::vector<size_t>& data) const;
  const char* WhyNobodys(const PsLiteMeta& meta) const;
  const char* WhyNoCommand(const PsLiteMeta& meta, int32_t sender, int32_t own);
  const char* WhyNoNodes(const std::vector<PsLiteNode>& nodes, int32_t sender);
  const char* WhyNotTold(const std::vector<PsLiteNode>& nodes);
  const char* WhyNotAdded(const PsLiteNode& node);
  bool AreCounted() const;  // how many processes the job has is known
  bool HaveAllAsked() const;

  PsLiteRole role_;
  int workers_;
  int servers_;
  HasCustomer has_customer_;
  Address scheduler_;
  std::set<Address> asked_;       // of this scheduler, for a number
  std::vector<PsLiteNode> told_;  // by the scheduler; nothing until then
};

}  // namespace kvstore_ext
