#include "ops/schedule_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/how_to_add.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

using core::Error;
using core::ErrorCode;
using transport::Arrival;

bool fits_memory(const ByteSpan& span, std::uint64_t size, std::uint64_t element) {
  return span.offset <= size && span.bytes <= size - span.offset && span.offset % element == 0 &&
         span.bytes % element == 0;
}

bool is_member(int peer, const Operation& operation) {
  return peer >= 0 && std::cmp_less(peer, operation.members.size());
}

bool sends_fit(const Operation& operation) {
  const std::uint64_t size = operation.sent_from().size();
  return std::ranges::all_of(operation.schedule.sends, [&operation, size](const Send& send) {
    return is_member(send.peer, operation) &&
           fits_memory(send.span, size, core::size_of(operation.type));
  });
}

std::span<std::byte> memory_of(const Receive& receive, const Operation& operation) {
  return receive.action == Action::kKeep ? operation.scratch : operation.buffer;
}

bool receives_fit(const Operation& operation) {
  return std::ranges::all_of(operation.schedule.receives, [&operation](const Receive& receive) {
    return is_member(receive.peer, operation) &&
           fits_memory(receive.span, memory_of(receive, operation).size(),
                       core::size_of(operation.type));
  });
}

// Where another rank's values for a sum lie, of all ranks but this one.
ByteSpan kept(const Sum& sum, std::uint64_t other) {
  return {sum.offset + other * sum.stride, sum.span.bytes};
}

bool sums_fit(const Operation& operation) {
  const std::uint64_t element = core::size_of(operation.type);
  return std::ranges::all_of(operation.schedule.sums, [&operation, element](const Sum& sum) {
    bool fits = fits_memory(sum.span, operation.buffer.size(), element);
    for (std::uint64_t other = 0; other < sum.others; ++other) {
      fits = fits && fits_memory(kept(sum, other), operation.scratch.size(), element);
    }
    return fits;
  });
}

template <typename Transfer>
bool gates_fit(const std::vector<Transfer>& transfers, const Schedule& schedule) {
  if (schedule.pieces == 0 || transfers.empty()) return true;
  return schedule.slots > 0 && transfers.back().piece < schedule.pieces &&
         std::ranges::is_sorted(transfers, {}, &Transfer::piece);
}

}  // namespace

core::Status ScheduleRunner::fits(const Operation& operation) {
  if (sends_fit(operation) && receives_fit(operation) && sums_fit(operation) &&
      gates_fit(operation.schedule.sends, operation.schedule) &&
      gates_fit(operation.schedule.receives, operation.schedule)) {
    return {};
  }
  return Error{ErrorCode::kInternal,
               fmt::format("the schedule of {} does not fit its buffer of {} bytes among {} ranks",
                           operation.title, operation.buffer.size(), operation.members.size())};
}

ScheduleRunner::ScheduleRunner(std::uint64_t id, Operation operation)
    : id_(id),
      operation_(std::move(operation)),
      gates_(operation_.schedule),
      arrived_(operation_.schedule.receives.size()) {
  const Schedule& schedule = operation_.schedule;
  sums_left_.reserve(schedule.sums.size());
  for (const Sum& sum : schedule.sums) sums_left_.push_back(sum.waits_for);
  remaining_ = schedule.sends.size() + schedule.receives.size() + schedule.pieces;
  sends_.reserve(schedule.sends.size());
  for (const Send& send : schedule.sends) {
    PeerState& state = peer_state(world_rank(send.peer));
    ++state.remaining;
    state.bytes_sent += send.span.bytes;
    sends_.push_back({static_cast<std::uint32_t>(state.sends.size()), send.waits_for});
    state.sends.push_back(static_cast<std::uint32_t>(sends_.size() - 1));
  }
  for (std::uint32_t i = 0; i < schedule.receives.size(); ++i) {
    PeerState& state = peer_state(world_rank(schedule.receives[i].peer));
    ++state.remaining;
    state.bytes_received += schedule.receives[i].span.bytes;
    state.receives.push_back(i);
  }
}

int ScheduleRunner::world_rank(int position) const {
  return operation_.members[static_cast<std::size_t>(position)];
}

int ScheduleRunner::peer_of_send(std::uint32_t index) const {
  return world_rank(operation_.schedule.sends[index].peer);
}

const ScheduleRunner::PeerState* ScheduleRunner::find_peer(int peer) const {
  const auto found = std::ranges::find(peers_, peer, &PeerState::peer);
  return found == peers_.end() ? nullptr : &*found;
}

ScheduleRunner::PeerState& ScheduleRunner::peer_state(int peer) {
  const auto found = std::ranges::find(peers_, peer, &PeerState::peer);
  if (found != peers_.end()) return *found;
  const bool ready = operation_.door() == Door::kNamed;
  return peers_.emplace_back(
      PeerState{.peer = peer, .ready = ready, .opened = gates_.free_at_peer(), .receives = {}});
}

bool ScheduleRunner::may_go(std::uint32_t send) const {
  if (sends_[send].waits_for > 0) return false;
  const std::uint32_t piece = operation_.schedule.sends[send].piece;
  const PeerState& peer = *find_peer(peer_of_send(send));
  return (peer.ready || operation_.early) && gates_.is_open(piece) && piece < peer.opened;
}

// On the ordered door also to those that only receive from us: a rank that believes in another
// operation, in which it does not even talk to us, must hear of ours.
bool ScheduleRunner::owes_notice(const PeerState& state) const {
  if (operation_.door() == Door::kNamed) return false;
  return operation_.door() == Door::kOrdered || !state.receives.empty();
}

ReadyNotice ScheduleRunner::notice_to(const PeerState& state) const {
  return {operation_.fingerprint, state.bytes_sent, state.bytes_received, operation_.description};
}

bool ScheduleRunner::agrees(int peer, const ReadyNotice& notice) const {
  const PeerState* state = find_peer(peer);
  const std::uint64_t sends = state == nullptr ? 0 : state->bytes_sent;
  const std::uint64_t expects = state == nullptr ? 0 : state->bytes_received;
  return notice.fingerprint == operation_.fingerprint && notice.expects == sends &&
         notice.sends == expects;
}

std::vector<int> ScheduleRunner::awaited() const {
  std::vector<int> ranks;
  for (const PeerState& state : peers_) {
    if (!state.ready) ranks.push_back(state.peer);
  }
  std::ranges::sort(ranks);
  return ranks;
}

void ScheduleRunner::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

transport::FrameHeader ScheduleRunner::header(transport::FrameKind kind) const {
  return {.epoch = operation_.epoch,
          .group = operation_.group,
          .sequence = operation_.sequence,
          .fingerprint = operation_.fingerprint,
          .kind = kind};
}

transport::OutgoingChunk ScheduleRunner::outgoing(std::uint32_t index) {
  take_in_hand(peer_of_send(index));
  const Send& send = operation_.schedule.sends[index];
  PeerState& peer = peer_state(peer_of_send(index));
  peer.bytes_taken += send.span.bytes;
  transport::FrameHeader chunk =
      header(peer.ready ? transport::FrameKind::kData : transport::FrameKind::kEarly);
  chunk.transfer = sends_[index].transfer;
  chunk.hop = send.hop;
  chunk.payload_bytes = send.span.bytes;
  return {.header = chunk,
          .payload = operation_.sent_from().subspan(send.span.offset, send.span.bytes),
          .ticket = {id_, index}};
}

bool ScheduleRunner::join(transport::OutgoingChunk& chunk, std::uint32_t next, std::uint64_t most) {
  const std::uint32_t last = send_of(chunk.ticket, chunk.ticket.count - 1);
  const Send& before = operation_.schedule.sends[last];
  const Send& send = operation_.schedule.sends[next];
  // What is empty could not be told from what is not there.
  const bool goes_on = sends_[next].transfer == sends_[last].transfer + 1 &&
                       send.peer == before.peer && send.hop == before.hop &&
                       send.piece == before.piece && before.span.bytes > 0 &&
                       send.span.offset == before.span.offset + before.span.bytes;
  if (!goes_on || send.span.bytes == 0 || chunk.payload.size() + send.span.bytes > most ||
      chunk.header.kind != transport::FrameKind::kData) {
    return false;
  }
  take_in_hand(peer_of_send(next));
  peer_state(peer_of_send(next)).bytes_taken += send.span.bytes;
  ++chunk.ticket.count;
  const std::size_t bytes = chunk.payload.size() + send.span.bytes;
  chunk.payload = operation_.sent_from().subspan(
      before.span.offset + before.span.bytes - chunk.payload.size(), bytes);
  chunk.header.payload_bytes = bytes;
  return true;
}

std::uint32_t ScheduleRunner::send_of(const transport::ChunkTicket& ticket,
                                      std::uint32_t part) const {
  const PeerState& peer = *find_peer(peer_of_send(ticket.transfer));
  return peer.sends[sends_[ticket.transfer].transfer + part];
}

std::uint32_t ScheduleRunner::receive_of(const transport::ChunkTicket& ticket,
                                         std::uint32_t part) const {
  if (part == 0) return ticket.transfer;
  const int peer = world_rank(operation_.schedule.receives[ticket.transfer].peer);
  const auto first = std::ranges::lower_bound(find_peer(peer)->receives, ticket.transfer);
  return first[static_cast<std::ptrdiff_t>(part)];
}

std::vector<std::uint32_t> ScheduleRunner::sent(std::uint32_t index) {
  return count_transfer(peer_of_send(index), operation_.schedule.sends[index].piece);
}

std::vector<std::uint32_t> ScheduleRunner::count_received(std::uint32_t index) {
  const Receive& receive = operation_.schedule.receives[index];
  return count_transfer(world_rank(receive.peer), receive.piece);
}

std::vector<std::uint32_t> ScheduleRunner::count_transfer(int peer, std::uint32_t piece) {
  PeerState& state = peer_state(peer);
  --state.remaining;
  --state.in_hand;
  --remaining_;
  --in_hand_;
  if (!gates_.count_down(piece) || failure_) return {};
  ++in_hand_;
  return {piece};
}

ScheduleRunner::Opened ScheduleRunner::count_opened(PieceGates::Range opened) {
  Opened result{.over = {}, .peers = {}, .count = opened.last};
  for (std::uint32_t piece = opened.first; piece < opened.last; ++piece) {
    --remaining_;
    if (!gates_.count_down(piece)) continue;
    ++in_hand_;
    result.over.push_back(piece);
  }
  // The first pieces come unasked.
  const std::uint32_t first = std::max(opened.first, gates_.free_at_peer());
  const std::vector<Receive>& receives = operation_.schedule.receives;
  for (const PeerState& state : peers_) {
    const auto next = std::ranges::lower_bound(
        state.receives, first, {}, [&](std::uint32_t index) { return receives[index].piece; });
    if (next != state.receives.end() && receives[*next].piece < opened.last) {
      result.peers.push_back(state.peer);
    }
  }
  return result;
}

Error ScheduleRunner::refusal(int peer, const std::string& reason) const {
  return {ErrorCode::kProtocol,
          fmt::format("rank {} sent a chunk of {} {}", peer, operation_.title, reason), peer};
}

core::Result<Arrival> ScheduleRunner::arrive(int peer, const transport::FrameHeader& header) {
  if (header.fingerprint != operation_.fingerprint) {
    return refusal(peer, fmt::format("with fingerprint {:08x} instead of {:08x}",
                                     header.fingerprint, operation_.fingerprint));
  }
  const PeerState* state = find_peer(peer);
  if (state == nullptr || header.transfer >= state->receives.size()) {
    return refusal(peer, fmt::format("numbered {}, but only {} are expected from it",
                                     header.transfer, state ? state->receives.size() : 0));
  }
  const std::uint32_t index = state->receives[header.transfer];
  const transport::ChunkTicket ticket{id_, index, joined(header, *state)};
  if (core::Status status = check(header, ticket); !status) {
    return refusal(peer, status.error().message);
  }
  const Receive& receive = operation_.schedule.receives[index];
  if (!operation_.schedule.receives_early && !gates_.is_open(receive.piece)) return Arrival{};
  for (std::uint32_t part = 0; part < ticket.count; ++part) {
    arrived_[receive_of(ticket, part)] = true;
    take_in_hand(peer);
  }
  const std::span<std::byte> place =
      memory_of(receive, operation_).subspan(receive.span.offset, header.payload_bytes);
  if (receive.action != Action::kReduce) return Arrival{Arrival::Kind::kInto, place, ticket};
  return Arrival{Arrival::Kind::kAbsorb, place, ticket,
                 how_to_add(operation_.type, operation_.reduction)};
}

// How many chunks come under the header: as many as its bytes make up, where each goes on where
// the one before ends. One if there are no such; check() says then what is wrong.
std::uint32_t ScheduleRunner::joined(const transport::FrameHeader& header,
                                     const PeerState& state) const {
  const auto receive = [&](std::uint32_t part) -> const Receive& {
    return operation_.schedule.receives[state.receives[header.transfer + part]];
  };
  std::uint64_t bytes = receive(0).span.bytes;
  std::uint32_t count = 1;
  for (; bytes < header.payload_bytes && header.transfer + count < state.receives.size(); ++count) {
    const Receive& last = receive(count - 1);
    const Receive& next = receive(count);
    if (next.span.offset != last.span.offset + last.span.bytes || next.piece != last.piece ||
        next.action != last.action || next.hop != last.hop) {
      break;
    }
    bytes += next.span.bytes;
  }
  return bytes == header.payload_bytes ? count : 1;
}

core::Status ScheduleRunner::check(const transport::FrameHeader& header,
                                   const transport::ChunkTicket& ticket) const {
  const Receive& receive = operation_.schedule.receives[ticket.transfer];
  for (std::uint32_t part = 0; part < ticket.count; ++part) {
    if (!arrived_[receive_of(ticket, part)]) continue;
    return Error{ErrorCode::kProtocol, fmt::format("numbered {} twice", header.transfer + part)};
  }
  if (ticket.count == 1 && header.payload_bytes != receive.span.bytes) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("numbered {} with {} bytes instead of {}", header.transfer,
                             header.payload_bytes, receive.span.bytes)};
  }
  if (header.hop != receive.hop) {
    return Error{ErrorCode::kProtocol, fmt::format("numbered {} at hop {} instead of {}",
                                                   header.transfer, header.hop, receive.hop)};
  }
  return {};
}

void ScheduleRunner::absorb(std::uint32_t index, std::uint64_t offset,
                            std::span<const std::byte> piece) const {
  const ByteSpan& span = operation_.schedule.receives[index].span;
  assert(span.offset + offset + piece.size() <= operation_.buffer.size());
  reduce_into(operation_.buffer.subspan(span.offset + offset).data(), piece.data(),
              piece.size() / core::size_of(operation_.type), operation_.type, operation_.reduction);
}

// What an operation that failed has kept is worth nothing.
std::optional<std::uint32_t> ScheduleRunner::due(std::uint32_t sum) {
  if (sum == kNoSum || --sums_left_[sum] > 0 || failure_) return std::nullopt;
  return sum;
}

void ScheduleRunner::add_up(std::uint32_t sum) const {
  const Sum& what = operation_.schedule.sums[sum];
  std::byte* const own = operation_.buffer.data() + what.span.offset;
  std::vector<const std::byte*> sources;
  sources.reserve(what.others + 1);
  for (std::uint64_t other = 0; other < what.others; ++other) {
    if (other == what.place) sources.push_back(own);
    sources.push_back(operation_.scratch.data() + kept(what, other).offset);
  }
  if (what.place >= what.others) sources.push_back(own);
  reduce_many(own, sources, what.span.bytes / core::size_of(operation_.type), operation_.type,
              operation_.reduction);
}

void ScheduleRunner::take_in_hand(int peer) {
  ++peer_state(peer).in_hand;
  ++in_hand_;
}

void ScheduleRunner::abandon(int peer) {
  if (find_peer(peer) == nullptr) return;
  in_hand_ -= std::exchange(peer_state(peer).in_hand, 0);
}

std::uint64_t ScheduleRunner::untaken(int peer) const {
  const PeerState* state = find_peer(peer);
  return state == nullptr || failure_ ? 0 : state->bytes_sent - state->bytes_taken;
}

bool ScheduleRunner::needs(int peer) const {
  const PeerState* state = find_peer(peer);
  return state != nullptr && state->remaining > 0;
}

}  // namespace fasthorovod::ops
