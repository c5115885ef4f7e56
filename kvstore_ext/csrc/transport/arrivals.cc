#include "transport/arrivals.h"

#include <utility>

namespace kvstore_ext {
namespace {

void TakeRefused(const Message& refused, const std::vector<std::unique_ptr<Link>>& links) {
  const int peer = refused.peer;
  if (peer >= 0 && peer < static_cast<int>(links.size())) links[peer]->TakeRefused(refused);
}

}  // namespace

void TakeIn(Message arrived, Gate* gate, Unreadable* unreadable, SchedulerLink* scheduler,
            const std::vector<std::unique_ptr<Link>>& links,
            const std::function<void(const Message&)>& act) {
  if (!gate->Admits(arrived)) return TakeRefused(arrived, links);
  if (arrived.peer == kScheduler) return scheduler->Receive(arrived);
  Link& link = *links[arrived.peer];
  unreadable->NoteIfUnfitPart([&] {
    link.Receive(std::move(arrived), [&](const Message& whole) {
      unreadable->NoteIfUnfit(whole, [&] { act(whole); });
    });
  });
}

}  // namespace kvstore_ext
