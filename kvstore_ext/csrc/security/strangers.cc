#include "security/strangers.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "support/clock.h"

namespace kvstore_ext {
namespace {

// Why ZeroMQ ends a connection (zmq::stream_engine_t::error_reason_t): what came was not what was
// to come, or nothing has come for half a minute. Otherwise the other end has ended it.
constexpr int kWrongProtocol = 0;
constexpr int kSilent = 2;
constexpr double kBetweenLines = 60.0;  // seconds

using PutsFunction = int(const char* line);
using EndedFunction = void(void* session, int reason);

PutsFunction* real_puts;
EndedFunction* real_ended;
std::atomic<uint64_t> strangers{0};
// Of ZeroMQ's own thread, of which a process has one.
uint64_t told = 0;
double next_line = 0.0;

void Tell() {
  const double now = Now();
  if (now < next_line) return;
  next_line = now + kBetweenLines;
  const auto count = static_cast<unsigned long long>(strangers - told);
  told = strangers;
  std::fprintf(stderr,
               "kvstore_ext: refused %llu connection%s from or to a process that does not know the "
               "job's key; more are counted, and told in a minute\n",
               count, count == 1 ? "" : "s");
}

int Puts(const char* line) { return std::strncmp(line, "CURVE I: ", 9) == 0 ? 0 : real_puts(line); }

void Ended(void* session, int reason) {
  if (reason == kWrongProtocol || reason == kSilent) {
    ++strangers;
    Tell();
  }
  real_ended(session, reason);
}

}  // namespace

void CountStrangers(Slots* slots) {
  slots->Replace("puts", &Puts, &real_puts);
  slots->Replace("_ZN3zmq14session_base_t12engine_errorENS_15stream_engine_t14error_reason_tE",
                 &Ended, &real_ended);
}

uint64_t Strangers() { return strangers; }

}  // namespace kvstore_ext
