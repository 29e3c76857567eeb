#include <fmt/format.h>

#include <utility>

#include "ops/chunk_board_impl.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;

ChunkBoard::Impl::Loss ChunkBoard::Impl::loss_of(const ScheduleRunner& runner) const {
  Loss loss;
  for (const int peer : runner.operation().members) {
    const Error* cause = peers_.gone(peer);
    if (cause == nullptr || !runner.needs(peer)) continue;
    lose(runner,
         {cause->code,
          fmt::format("{} needs rank {}, which was gone already: {}", runner.operation().title,
                      peer, cause->message),
          peer},
         loss);
  }
  return loss;
}

// Who vanished without a word, after a member had left, may have ended because of that one.
const Error* ChunkBoard::Impl::who_left(const Operation& operation, int culprit) const {
  const Error* left = peers_.left(culprit);
  if (left == nullptr || left->code == ErrorCode::kShutdown) return left;
  for (const int member : operation.members) {
    const Error* before = peers_.left(member);
    if (before != nullptr && before->code == ErrorCode::kShutdown) return before;
  }
  return left;
}

// An operation needs the culprit, which is gone.
void ChunkBoard::Impl::lose(const ScheduleRunner& runner, Error error, Loss& loss) const {
  const Operation& operation = runner.operation();
  const Error* left = who_left(operation, error.culprit);
  if (left != nullptr) {
    error = {left->code, fmt::format("during {}: {}", operation.title, left->message),
             left->culprit};
  }
  if (left != nullptr && !is_planned(operation.group)) {
    if (runner.failure()) return;
    loss.departures.push_back({operation.group, operation.sequence, std::move(error)});
  } else if (!loss.fault) {
    loss.fault = Fault{error.culprit, std::move(error)};
  }
}

bool ChunkBoard::Impl::all_ended(int peer) {
  return peers_.ended(peer) >= peers_.expected_ends(peer).value_or(flows_with_(peer));
}

ChunkBoard::Impl::Loss ChunkBoard::Impl::lose_peer(int peer, const Error& cause) {
  peers_.mark_gone(peer, cause);
  Loss loss;
  std::vector<ScheduleRunner*> abandoned;
  flights_.for_each_that_needs(peer, [&](ScheduleRunner& runner) {
    const std::string& title = runner.operation().title;
    lose(runner, {cause.code, fmt::format("during {}: {}", title, cause.message), peer}, loss);
    if (peers_.left(peer) == nullptr || !all_ended(peer)) return;
    runner.abandon(peer);
    abandoned.push_back(&runner);
  });
  for (const ScheduleRunner* runner : abandoned) {
    if (!runner->failure()) continue;
    if (std::optional<Ended> ended = finished(*runner)) loss.ended.push_back(*std::move(ended));
  }
  return loss;
}

void ChunkBoard::Impl::tell(Loss loss) const {
  for (const Ended& ended : loss.ended) ended.operation.done(ended.status);
  if (loss.fault) on_fault_(loss.fault->peer, std::move(loss.fault->error));
  for (const Departure& departure : loss.departures) hooks_.departure(departure);
}

// Gives the lock back.
void ChunkBoard::Impl::tell_of_peer(int peer, std::unique_lock<std::mutex> lock, Loss loss) const {
  const Error* left = peers_.left(peer);
  const Error* cause = peers_.gone(peer);
  std::optional<Error> gone;
  if (cause != nullptr) gone = left == nullptr ? *cause : *left;
  lock.unlock();
  const bool is_fault = loss.fault.has_value();
  tell(std::move(loss));
  if (gone && !is_fault) hooks_.gone(peer, *gone);
}

void ChunkBoard::Impl::depart(int peer, const Error& words, int flows) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  peers_.mark_left(peer, words);
  peers_.expect_ends(peer, flows);
  if (!all_ended(peer)) return;
  Loss loss = lose_peer(peer, words);
  tell_of_peer(peer, std::move(lock), std::move(loss));
}

void ChunkBoard::Impl::flow_ended(int peer, const transport::FlowEnd& end) {
  std::unique_lock lock(mutex_);
  Loss loss = end_flow(peer, end);
  tell_of_peer(peer, std::move(lock), std::move(loss));
}

ChunkBoard::Impl::Loss ChunkBoard::Impl::end_flow(int peer, const transport::FlowEnd& end) {
  if (over_) return {};
  peers_.count_end(peer);
  const bool is_last = all_ended(peer);
  const bool in_order = end.clean || peers_.left(peer) != nullptr;
  if (in_order && !is_last) return {};
  const std::string words = end.error.message.empty()
                                ? fmt::format("rank {} closed its last flow", peer)
                                : end.error.message;
  const ErrorCode code = end.clean ? ErrorCode::kPeerLost : end.error.code;
  Loss loss = lose_peer(peer, {code, words, peer});
  // What a peer sent against the rules is a fault even when nobody waits for it.
  if (!loss.fault && !end.clean && code == ErrorCode::kProtocol) {
    loss.fault = Fault{peer, {code, words, peer}};
  }
  return loss;
}

}  // namespace fasthorovod::ops
