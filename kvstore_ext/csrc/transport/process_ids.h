// ps-lite's numbers for the processes of a job, and ours for peers (message.h).
#pragma once

#include "support/pslite_ids.h"
#include "transport/message.h"

namespace kvstore_ext {

// As ps-lite numbers them.
enum class Role { kServer = 0, kWorker = 1, kScheduler = 2 };

// Of a peer of who has this role.
inline int PeerId(Role role, int peer) {
  if (peer == kScheduler) return kSchedulerId;
  if (role == Role::kScheduler) return peer + ServerId(0);
  return role == Role::kWorker ? ServerId(peer) : WorkerId(peer);
}

// Back, for who has this role and so many peers: kNobody for the number of none of them. It comes
// from the network, and may be any.
inline int PeerOf(Role role, int peers, int id) {
  if (id == kSchedulerId) return kScheduler;
  if (id < ServerId(0)) return kNobody;
  const int number = id - ServerId(0);
  const int peer = role == Role::kScheduler ? number : number / 2;
  const bool has_role = role == Role::kScheduler || number % 2 == (role == Role::kServer ? 1 : 0);
  return has_role && peer < peers ? peer : kNobody;
}

}  // namespace kvstore_ext
