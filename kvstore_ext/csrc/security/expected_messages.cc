#include "security/expected_messages.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "support/pslite_ids.h"

namespace kvstore_ext {
namespace {

constexpr int32_t kEverybody = 7;  // groups are sums of 1, 2 and 4
constexpr int32_t kServerRole = 0;
constexpr int32_t kWorkerRole = 1;
constexpr int32_t kMXNetApp = 0;
constexpr int32_t kLaneApp = 1;
constexpr size_t kLongestName = 11;   // of a number that fits
constexpr size_t kStockKeyBytes = 8;  // of MXNet's keys, and of the length of one's values
constexpr size_t kLengthBytes = 4;

bool BeginsAsANumbers(std::string_view name) { return name.substr(0, 2) == "ps"; }

std::string TextOfEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int NumberOfEnvironment(const char* name) {
  return std::max(0, std::atoi(TextOfEnvironment(name).c_str()));
}

bool IsOneOf(char letter, std::string_view others) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         others.find(letter) != std::string_view::npos;
}

// ZeroMQ refuses an address with anything else, and ps-lite then ends the process.
bool HasAddress(const PsLiteNode& node) {
  const std::string& host = node.hostname;
  if (host.empty() || !IsOneOf(host.front(), ":[")) return false;
  const auto fits = [](char letter) { return IsOneOf(letter, ".:-_%[]"); };
  return std::all_of(host.begin(), host.end(), fits) && node.port > 0 && node.port < 65536;
}

// MXNet's own servers and workers look for keys, values, and perhaps lengths.
const char* WhyNoParts(const PsLiteMeta& meta, const std::vector<size_t>& data) {
  if (data.size() != meta.data_types) return "it has other parts than it says";
  if (meta.app == kLaneApp) return data.size() > 1 ? "it has too many parts" : nullptr;
  if (data.empty()) return nullptr;
  if (data.size() == 1 || data.size() > 3) return "it has other parts than keys and values";
  if (data[0] == 0 || data[0] % kStockKeyBytes != 0) return "its keys have another size";
  if (data.size() == 2) return nullptr;
  if (data[2] % kLengthBytes != 0) return "its lengths have another size";
  const bool agree = data[2] / kLengthBytes == data[0] / kStockKeyBytes;
  return meta.request && !agree ? "it has other lengths than keys" : nullptr;
}

}  // namespace

int32_t PsLiteId(std::string_view name) {
  if (name.size() < 3 || name.size() > kLongestName || !BeginsAsANumbers(name) || name[2] == '0') {
    return kPsLiteNone;
  }
  int32_t id = 0;
  for (const char digit : name.substr(2)) {
    if (digit < '0' || digit > '9') return kPsLiteNone;
    id = id * 10 + (digit - '0');
  }
  return id;
}

ExpectedMessages ExpectedMessages::FromEnvironment(HasCustomer has_customer) {
  const std::string role = TextOfEnvironment("DMLC_ROLE");
  const PsLiteRole found = role == "server"      ? PsLiteRole::kServer
                           : role == "worker"    ? PsLiteRole::kWorker
                           : role == "scheduler" ? PsLiteRole::kScheduler
                                                 : PsLiteRole::kUnknown;
  return {found,
          NumberOfEnvironment("DMLC_NUM_WORKER"),
          NumberOfEnvironment("DMLC_NUM_SERVER"),
          has_customer,
          {TextOfEnvironment("DMLC_PS_ROOT_URI"), NumberOfEnvironment("DMLC_PS_ROOT_PORT")}};
}

const char* ExpectedMessages::WhyNot(const PsLiteFrames& frames, int32_t own) {
  const int32_t sender = PsLiteId(frames.name);
  // ps-lite takes "ps08" for 8, and ZeroMQ does not know that as the name of who is connected.
  if (sender == kPsLiteNone && BeginsAsANumbers(frames.name)) return "no process has such a name";
  if (sender != kPsLiteNone && !Sends(sender, own)) return "nobody of that number sends to here";
  // A scheduler that answers a number which nobody has yet is ended by ps-lite.
  const bool numbered = sender != kPsLiteNone && sender != kSchedulerId;
  if (role_ == PsLiteRole::kScheduler && numbered && AreCounted() && !HaveAllAsked()) {
    return "nobody has a number yet";
  }
  PsLiteMeta meta;
  if (!meta.Read(frames.meta)) return "its fixed part cannot be read";
  if (meta.command == PsLiteCommand::kNone) {
    return sender == kPsLiteNone ? "its sender has no number" : WhyNoData(meta, frames.data);
  }
  if (!frames.data.empty() || meta.data_types > 0) return "a command has no other parts";
  return WhyNoCommand(meta, sender, own);
}

bool ExpectedMessages::IsOfJob(int32_t id) const {
  if (IsWorkerId(id)) return workers_ == 0 || id < WorkerId(workers_);
  if (IsServerId(id)) return servers_ == 0 || id < ServerId(servers_);
  return id == kSchedulerId;
}

// ps-lite connects processes of different roles, and each with itself.
bool ExpectedMessages::Sends(int32_t sender, int32_t own) const {
  if (!IsOfJob(sender)) return false;
  if (sender == own || sender == kSchedulerId) return true;
  if (role_ == PsLiteRole::kWorker) return IsServerId(sender);
  return role_ != PsLiteRole::kServer || IsWorkerId(sender);
}

const char* ExpectedMessages::WhyNoData(const PsLiteMeta& meta,
                                        const std::vector<size_t>& data) const {
  if (meta.app != kMXNetApp && meta.app != kLaneApp) return "it is for nobody";
  if (meta.timestamp == kPsLiteNone) return "it has no timestamp";
  const char* why = WhyNoParts(meta, data);
  return why != nullptr ? why : WhyNobodys(meta);
}

// ps-lite looks for a worker's customer by its number, and for others' by their app's. It ends a
// process that has not got it.
const char* ExpectedMessages::WhyNobodys(const PsLiteMeta& meta) const {
  const bool worker = role_ == PsLiteRole::kWorker;
  // It counts an answer in a place of memory that the answer itself names, asked for or not.
  if (meta.app == kLaneApp && !meta.request) return "the lane has asked for nothing";
  if (meta.app == kMXNetApp && role_ != PsLiteRole::kUnknown && meta.request == worker) {
    return worker ? "a worker is asked for nothing" : "a server has asked for nothing";
  }
  return has_customer_(meta.app, worker ? meta.customer : meta.app) ? nullptr : "it is for nobody";
}

const char* ExpectedMessages::WhyNoCommand(const PsLiteMeta& meta, int32_t sender, int32_t own) {
  const bool schedules = role_ == PsLiteRole::kScheduler || role_ == PsLiteRole::kUnknown;
  if (meta.command == PsLiteCommand::kAddNode) {
    const bool tells = sender == kSchedulerId;
    if (tells && role_ == PsLiteRole::kScheduler) return "the scheduler is there already";
    return tells || schedules ? WhyNoNodes(meta.nodes, sender)
                              : "only the scheduler adds processes";
  }
  if (sender == kPsLiteNone) return "its sender has no number";
  switch (meta.command) {
    case PsLiteCommand::kTerminate:
      return sender == own ? nullptr : "a process ends by its own command alone";
    case PsLiteCommand::kBarrier:
      // ps-lite leaves an answer's group as its memory was.
      if (!meta.request) {
        return sender == kSchedulerId ? nullptr : "only the scheduler ends a barrier";
      }
      if (meta.barrier_group < 1 || meta.barrier_group > kEverybody)
        return "there is no such group";
      return schedules ? nullptr : "only the scheduler counts who waits";
    case PsLiteCommand::kHeartbeat: {
      const bool its_own = std::all_of(meta.nodes.begin(), meta.nodes.end(),
                                       [&](const PsLiteNode& node) { return node.id == sender; });
      return its_own ? nullptr : "a heartbeat is the sender's own";
    }
    case PsLiteCommand::kAcknowledge: return nullptr;
    default: return "there is no such command";
  }
}

// A process without a number asks the scheduler for one, which tells everybody of everybody.
const char* ExpectedMessages::WhyNoNodes(const std::vector<PsLiteNode>& nodes, int32_t sender) {
  for (const PsLiteNode& node : nodes) {
    if (!HasAddress(node)) return "a process without an address";
    if (sender == kSchedulerId && !IsOfJob(node.id)) return "there is no such process";
  }
  if (sender == kSchedulerId) return WhyNotTold(nodes);
  if (nodes.size() != 1 || nodes.front().id != sender) return "a process can add itself alone";
  return WhyNotAdded(nodes.front());
}

bool ExpectedMessages::AreCounted() const { return workers_ > 0 && servers_ > 0; }

bool ExpectedMessages::HaveAllAsked() const {
  return AreCounted() && asked_.size() >= static_cast<size_t>(workers_ + servers_);
}

// ps-lite gives up its connection to a process that has another address now. It may be told the
// same again, where messages are sent again (PS_RESEND).
const char* ExpectedMessages::WhyNotTold(const std::vector<PsLiteNode>& nodes) {
  if (nodes.empty()) return "it adds nobody";
  if (told_.empty()) told_ = nodes;
  return nodes == told_ ? nullptr : "the scheduler has told who there is";
}

// A scheduler takes a process at its own address for itself, and then has no number any more.
const char* ExpectedMessages::WhyNotAdded(const PsLiteNode& node) {
  if (node.role != kServerRole && node.role != kWorkerRole) return "it has no role";
  Address address(node.hostname, node.port);
  if (address == scheduler_) return "it has the scheduler's address";
  if (HaveAllAsked() && asked_.count(address) == 0) return "all have a number";
  asked_.insert(std::move(address));
  return nullptr;
}

}  // namespace kvstore_ext
