#include "security/strangers.h"

#include <cstring>

#include "security/tally.h"
#include "support/say.h"

namespace kvstore_ext {
namespace {

// Why ZeroMQ ends a connection (zmq::stream_engine_t::error_reason_t): what came was not what was
// to come, or nothing has come for half a minute. Otherwise the other end has ended it.
constexpr int kWrongProtocol = 0;
constexpr int kSilent = 2;

using PutsFunction = int(const char* line);
using EndedFunction = void(void* session, int reason);

PutsFunction* real_puts;
EndedFunction* real_ended;
Tally strangers;  // counted by ZeroMQ's own thread, of which a process has one

void Tell(unsigned long long count) {
  Say("kvstore_ext: refused " + std::to_string(count) + " connection" + (count == 1 ? "" : "s") +
      " from or to a process that does not know the job's key; more are counted, and told with one "
      "that comes after a minute");
}

int Puts(const char* line) { return std::strncmp(line, "CURVE I: ", 9) == 0 ? 0 : real_puts(line); }

void Ended(void* session, int reason) {
  if (reason == kWrongProtocol || reason == kSilent) {
    if (const uint64_t count = strangers.Add()) Tell(count);
  }
  real_ended(session, reason);
}

}  // namespace

void CountStrangers(Slots* slots) {
  slots->Replace("puts", &Puts, &real_puts);
  slots->Replace("_ZN3zmq14session_base_t12engine_errorENS_15stream_engine_t14error_reason_tE",
                 &Ended, &real_ended);
}

uint64_t Strangers() { return strangers.total(); }

}  // namespace kvstore_ext
