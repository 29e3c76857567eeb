// Point-to-point on one rank. A send announces itself to the receiver and waits on the board; when
// a receive takes it, the receiver says that it is ready, and the bytes flow in chunks over all
// flows. So nothing arrives that has no place, and messages have no order with anything else.
//
// A message that one side gives up (a time limit, another size) is refused to the other side, whose
// send or receive fails with the same words; the connection is as good as before.
//
// Thread: any; a mutex guards the tables. Handles complete on the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/world.h"
#include "ops/chunk_board.h"
#include "ops/mailbox.h"
#include "ops/worker.h"

namespace fasthorovod::ops {

class MessageDoor final {
 public:
  struct Hooks {
    std::function<void(int peer)> need_flows;
    std::function<void(int peer, core::Error error)> fault;  // a peer broke the protocol
    std::function<void()> idle;                              // nothing is pending any more
  };

  MessageDoor(const core::World& world, int flows, const GroupTable& groups, ChunkBoard& board,
              Worker& worker, DeadlineQueue& deadlines, Hooks hooks);

  core::Result<Handle> send(Message message);
  core::Result<Handle> receive(Message message);

  /// An announcement or a refusal came.
  void hear(const ControlFrame& frame);

  /// Nothing more comes from a rank: receives that name it fail.
  void lose(int peer, const core::Error& cause);

  /// A rank has aborted a group: receives there that name it fail.
  void end(core::GroupId group, int peer, const core::Error& cause);

  /// What is pending in the group fails.
  void remove(const GroupPtr& group);

  /// send() and receive() refuse from now on; the first error stands.
  void close(const core::Error& error);
  /// After close(): fails what the board does not know of.
  void fail(const core::Error& error);

  [[nodiscard]] bool idle() const { return pending_.load() == 0; }
  [[nodiscard]] std::uint64_t messages() const { return messages_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t payload_bytes() const {
    return payload_bytes_.load(std::memory_order_relaxed);
  }

 private:
  using Name = std::pair<core::GroupId, std::uint64_t>;  // group, sequence

  core::Result<MessagePtr> take(Message message, bool sends);
  void watch(const MessagePtr& job);
  void announce(const MessagePtr& job);
  void match(const MessagePtr& receive, const Announcement& announcement);
  void match_local(const MessagePtr& receive, const MessagePtr& send);
  void start(const MessagePtr& job);
  void announced(const ControlFrame& frame);
  void refused(const ControlFrame& frame);
  void refuse(int peer, core::GroupId group, std::uint64_t sequence, const core::Error& error);
  [[nodiscard]] core::Error wrong_size(const MessagePtr& receive, int sender, std::uint64_t bytes,
                                       const std::string& title) const;
  void expire(const MessagePtr& job);
  void give_up(const MessagePtr& job, const core::Error& error);
  void settle(const MessagePtr& job, const core::Status& status);
  void finish(const MessagePtr& job, const core::Status& status);

  const core::World& world_;
  const int flows_;
  const GroupTable& groups_;
  ChunkBoard& board_;
  Worker& worker_;
  DeadlineQueue& deadlines_;
  const Hooks hooks_;

  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::map<core::GroupId, Mailbox> mailboxes_;
  std::map<Name, MessagePtr> on_board_;
  std::set<core::GroupId> removed_;
  std::map<int, core::Error> lost_;
  std::map<std::pair<core::GroupId, int>, core::Error> ended_;  // of groups not removed here
  std::optional<core::Error> closed_;

  std::atomic<int> pending_{0};  // handles not done; partner: idle()
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> payload_bytes_{0};
};

}  // namespace fasthorovod::ops
