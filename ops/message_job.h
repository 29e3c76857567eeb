// One send or receive between submit and completion.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ops/deadline_queue.h"
#include "ops/group_table.h"
#include "ops/handle.h"
#include "ops/operation.h"
#include "ops/ordered.h"

namespace fasthorovod::ops {

struct MessageJob {
  Message message;
  GroupPtr group;
  bool sends = false;
  int peer = -1;               // world rank; receiving from anybody: -1 until it is matched
  std::uint64_t sequence = 0;  // on the wire; of a receive: once it is matched
  Handle handle = Handle::pending();
  std::optional<DeadlineQueue::Token> deadline;
  bool over = false;  // worker: the outcome is settled
};

/// Owners: the door's tables, the operation's callback and the time limit.
using MessagePtr = std::shared_ptr<MessageJob>;

/// "send of 16 bytes to rank 2 (host b), tag 5", or the caller's title.
std::string title_of(const MessageJob& job, const core::World& world);

/// What the board runs, without `done`; `flows` is how many connections share a message.
Operation transfer_of(const MessageJob& job, const core::World& world, int flows);

}  // namespace fasthorovod::ops
