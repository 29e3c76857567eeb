#include "transport/remote_work.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "transport/lane.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

// As a lane asks again for what a flow of its own process left.
constexpr auto kLeaveFor = std::chrono::milliseconds(1);

Error nonsense(const char* what) { return {ErrorCode::kProtocol, what}; }

}  // namespace

RemoteWork::RemoteWork(const Arena& arena, AuxMailbox& mailbox, FileDescriptor bell,
                       AddFunction add)
    : arena_(arena),
      mailbox_(mailbox),
      bell_(std::move(bell)),
      add_(std::move(add)),
      requests_(mailbox.requests),
      answers_(mailbox.answers) {}

void RemoteWork::ring() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof one);
}

void RemoteWork::post(const AuxRequest& request) {
  publish();
  for (const AuxRequest& look : looks_) unheard_ = requests_.write(look) || unheard_;
  looks_.clear();
  unheard_ = requests_.write(request) || unheard_;
}

void RemoteWork::flush() {
  if (std::exchange(unheard_, false)) ring();
}

core::Result<bool> RemoteWork::hear() {
  bool heard = false;
  while (true) {
    auto answer = answers_.read();
    if (!answer) return std::move(answer).error();
    if (!*answer) break;
    heard = true;
    if (core::Status status = hear(**answer); !status) return std::move(status).error();
  }
  if (answers_.take_starved()) ring();
  if (requests_.flush()) ring();
  return heard;
}

core::Status RemoteWork::hear(const AuxAnswer& answer) {
  switch (answer.kind) {
    case AuxAnswer::Kind::kChunk:
      return assign(answer);
    case AuxAnswer::Kind::kNothing:
      if (Peer& peer = peers_[answer.peer]; peer.asks) peer.nothing = true;
      return {};
    case AuxAnswer::Kind::kInto:
    case AuxAnswer::Kind::kAdd:
    case AuxAnswer::Kind::kParked:
    case AuxAnswer::Kind::kRefused:
      return admit(answer);
    case AuxAnswer::Kind::kForget:
      peers_.erase(answer.peer);
      return {};
    case AuxAnswer::Kind::kAskAlive:
      post({.kind = AuxRequest::Kind::kAlive});
      return {};
    case AuxAnswer::Kind::kLeave:
      leave(answer);
      return {};
  }
  return nonsense("an answer of unknown kind");
}

core::Result<std::span<std::byte>> RemoteWork::place(const AuxAnswer& answer) const {
  const std::span<std::byte> all = arena_.bytes();
  if (answer.offset > all.size() || answer.bytes > all.size() - answer.offset) {
    return nonsense("a place outside of the arena");
  }
  return all.subspan(answer.offset, answer.bytes);
}

core::Status RemoteWork::assign(const AuxAnswer& answer) {
  const auto payload = place(answer);
  if (!payload) return payload.error();
  const auto header = decode(answer.header);
  if (!header) return header.error();
  Peer& peer = peers_[answer.peer];
  if (peer.asks == answer.flow) peer.asks.reset();
  peer.nothing = false;
  peer.assigned.push_back({{*header, *payload, {.operation = answer.id}}, answer.flow});
  return {};
}

void RemoteWork::leave(const AuxAnswer& answer) {
  Peer& peer = peers_[answer.peer];
  if (peer.asks != answer.flow) return;  // it has ended since
  peer.asks.reset();
  peer.nothing = false;
  leave_[answer.flow] = core::Clock::now() + kLeaveFor;
}

core::Status RemoteWork::admit(const AuxAnswer& answer) {
  const auto asked =
      std::ranges::find(asked_, answer.id, [](const auto& entry) { return entry.second.id; });
  if (asked == asked_.end() || asked->second.answer) return nonsense("an answer nobody asked for");
  if (answer.kind == AuxAnswer::Kind::kParked) {
    asked->second.parked = true;
    return {};
  }
  if (answer.kind == AuxAnswer::Kind::kRefused) {
    asked->second.answer = answer.error.unpack();
    return {};
  }
  const auto to = place(answer);
  if (!to) return to.error();
  const ChunkTicket ticket{.operation = answer.id};
  if (answer.kind == AuxAnswer::Kind::kInto) {
    asked->second.answer = Arrival{Arrival::Kind::kInto, *to, ticket};
    return {};
  }
  targets_[answer.id] = {*to, static_cast<std::uint16_t>(answer.how)};
  asked->second.answer = Arrival{Arrival::Kind::kAbsorb, *to, ticket};
  return {};
}

void RemoteWork::publish() {
  if (lane_ == nullptr) return;
  const LaneStatistics statistics = lane_->statistics();
  SharedStatistics& shared = mailbox_.statistics;
  shared.bytes_sent.store(statistics.bytes_sent, std::memory_order_relaxed);
  shared.bytes_received.store(statistics.bytes_received, std::memory_order_relaxed);
  shared.chunks_sent.store(statistics.chunks_sent, std::memory_order_relaxed);
  shared.chunks_received.store(statistics.chunks_received, std::memory_order_relaxed);
  shared.turns.store(statistics.turns, std::memory_order_relaxed);
}

const std::vector<std::uint32_t>& RemoteWork::flows_to(int peer) const {
  static const std::vector<std::uint32_t> none;
  const auto found = flows_.find(peer);
  return found == flows_.end() ? none : found->second;
}

// What was assigned to it may go on any other one, and another may ask. One without a number may
// stand for another one that has none either.
void RemoteWork::give_up(int peer, std::uint32_t flow) {
  auto& flows = flows_[peer];
  flows.erase(std::ranges::find(flows, flow));
  if (flow == kNoFlow) return;
  leave_.erase(flow);
  const auto found = peers_.find(peer);
  if (found != peers_.end() && found->second.asks == flow) {
    found->second.asks.reset();
    found->second.nothing = false;
  }
  post({.kind = AuxRequest::Kind::kGiveUp, .peer = peer, .flow = flow});
}

bool RemoteWork::may_ask(int peer) const {
  return std::ranges::any_of(flows_to(peer), [this](std::uint32_t flow) {
    return flow == kNoFlow || mailbox_.flows[flow].in_use.load();
  });
}

bool RemoteWork::may_carry(int peer, const Assigned& assigned, std::uint32_t flow) const {
  if (assigned.flow == flow) return true;
  const auto& flows = flows_to(peer);
  return assigned.flow == kNoFlow || std::ranges::find(flows, assigned.flow) == flows.end();
}

bool RemoteWork::has_chunk(int peer, std::uint32_t flow) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() &&
         std::ranges::any_of(found->second.assigned, [&](const Assigned& assigned) {
           return may_carry(peer, assigned, flow);
         });
}

bool RemoteWork::leaves_next(int peer, std::uint32_t flow) const {
  if (has_chunk(peer, flow)) return false;
  const auto found = peers_.find(peer);
  if (found != peers_.end() && !found->second.assigned.empty()) return true;
  const auto until = leave_.find(flow);
  return until != leave_.end() && core::Clock::now() < until->second;
}

std::optional<OutgoingChunk> RemoteWork::take_for(int peer, std::uint32_t flow) {
  Peer& state = peers_[peer];
  const auto found = std::ranges::find_if(
      state.assigned, [&](const Assigned& assigned) { return may_carry(peer, assigned, flow); });
  if (found != state.assigned.end()) {
    const OutgoingChunk chunk = found->chunk;
    state.assigned.erase(found);
    state.last = flow;
    return chunk;
  }
  ask(peer, flow);
  return std::nullopt;
}

void RemoteWork::ask(int peer, std::uint32_t flow) {
  Peer& state = peers_[peer];
  if (state.asks && (!state.gives_way || state.asks == flow)) return;
  state.asks = flow;
  state.gives_way = flow == state.last;
  post({.kind = AuxRequest::Kind::kWant, .peer = peer, .flow = flow});
}

// So the answer is there, and wakes nobody, when the lane has sent what it has.
void RemoteWork::ask_ahead(int peer, std::uint32_t flow) {
  if (peers_[peer].asks || has_chunk(peer, flow)) return;
  ask(peer, flow);
  flush();
}

void RemoteWork::look(const Look& look, std::uint32_t flow) {
  looks_.push_back({.kind = AuxRequest::Kind::kLook,
                    .flow = flow,
                    .dry = look.dry ? 1U : 0U,
                    .drained = look.drained,
                    .at = look.at.time_since_epoch().count()});
}

// Until a request is answered there may be work; after that the rank sends it by itself. Where no
// flow may ask, there is none for this lane.
bool RemoteWork::has_work(int peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return may_ask(peer);
  const Peer& state = found->second;
  return !state.assigned.empty() || (!state.nothing && may_ask(peer));
}

void RemoteWork::sent(const ChunkTicket& ticket) {
  post({.kind = AuxRequest::Kind::kSent, .id = static_cast<std::uint32_t>(ticket.operation)});
}

// Two flows may hold equal headers: the second asks for itself once the first has its answer.
core::Result<Arrival> RemoteWork::arrive(int peer, const FrameHeader& header) {
  const FrameHeaderBytes bytes = encode(header);
  const auto [asked, fresh] = asked_.try_emplace({peer, bytes});
  if (fresh) {
    asked->second.id = ++last_arrival_;
    post(
        {.kind = AuxRequest::Kind::kArrive, .peer = peer, .id = asked->second.id, .header = bytes});
  }
  if (!asked->second.answer) {
    return Arrival{asked->second.parked ? Arrival::Kind::kPark : Arrival::Kind::kAsked, {}, {}};
  }
  core::Result<Arrival> answer = std::move(*asked->second.answer);
  asked_.erase(asked);
  return answer;
}

void RemoteWork::absorb(const ChunkTicket& ticket, std::uint64_t offset,
                        std::span<const std::byte> piece) {
  const Target& target = targets_.at(static_cast<std::uint32_t>(ticket.operation));
  const bool fits = offset <= target.to.size() && piece.size() <= target.to.size() - offset;
  // The rank and its auxiliaries are of one build, so neither can happen; a wrong sum would be
  // worse than an auxiliary that ends.
  if (!fits || !add_(target.to.subspan(offset, piece.size()), piece, target.how)) std::abort();
}

void RemoteWork::received(const ChunkTicket& ticket) {
  const auto id = static_cast<std::uint32_t>(ticket.operation);
  targets_.erase(id);
  post({.kind = AuxRequest::Kind::kReceived, .id = id});
}

void RemoteWork::flow_ended(int peer, const FlowEnd& end) {
  post({.kind = AuxRequest::Kind::kFlowEnded,
        .peer = peer,
        .clean = end.clean ? 1U : 0U,
        .error = SharedError::from(end.error)});
}

}  // namespace fasthorovod::transport
