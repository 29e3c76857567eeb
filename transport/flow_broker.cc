#include "transport/flow_broker.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "core/lane_plan.h"
#include "transport/congestion.h"
#include "transport/socket.h"

namespace fasthorovod::transport {

namespace asio = boost::asio;

namespace {

// A rank that is stopped for a while closes its window, which the kernel takes for silence as well.
// Hosts that are gone show on the control connections much sooner.
constexpr auto kFlowSilence = std::chrono::seconds(60);

// Flows with a higher index are refused.
constexpr auto kMostFlows = static_cast<std::uint32_t>(core::kMostFlows);

}  // namespace

FlowBroker::FlowBroker(asio::io_context& context, const Secret& secret, const FlowOptions& options)
    : context_(context), secret_(secret), options_(options) {}

void FlowBroker::set_members(std::vector<Member> members, std::vector<std::uint32_t> scopes) {
  members_ = std::move(members);
  scopes_ = std::move(scopes);
}

void FlowBroker::attach(FlowHandlers handlers) {
  handlers_ = std::move(handlers);
  for (const auto& [peer, entry] : peers_) {
    if (!entry.early.empty()) handlers_.on_wanted(peer);
  }
}

void FlowBroker::close() {
  closed_ = true;
  peers_.clear();
}

void FlowBroker::open(int peer, int count) {
  if (closed_ || peer < 0 || peer >= options_.size || peer == options_.rank || count < 1) return;
  Peer& entry = peers_[peer];
  if (entry.wanted) return;
  entry.wanted = count;
  for (auto& [flow, socket] : std::exchange(entry.early, {})) {
    if (static_cast<int>(flow) < count) deliver(peer, flow, std::move(socket));
  }
  if (options_.rank < peer) {
    const auto deadline = core::Clock::now() + options_.limit;
    for (int flow = 0; flow < count; ++flow) {
      asio::co_spawn(context_, keep_dialling(peer, static_cast<std::uint32_t>(flow), deadline),
                     asio::detached);
    }
  } else {
    asio::co_spawn(context_, watch(peer), asio::detached);
  }
}

asio::awaitable<void> FlowBroker::keep_dialling(int peer, std::uint32_t flow,
                                                core::TimePoint deadline) {
  const Claim claim{options_.job, options_.epoch, Purpose::kFlow, options_.rank, peer, flow};
  const auto index = static_cast<std::size_t>(peer);
  const auto& own_host = members_[static_cast<std::size_t>(options_.rank)].real_host;
  const auto endpoints = dialling_order(members_[index], own_host, scopes_);
  BackOff back_off;
  while (!closed_ && core::Clock::now() < deadline) {
    DialResult result = co_await dial(context_, secret_, claim, endpoints);
    if (closed_) co_return;
    if (auto* dialled = std::get_if<Dialled>(&result))
      co_return deliver(peer, flow, std::move(dialled->socket));
    const auto& failure = std::get<DialFailure>(result);
    peers_[peer].last_error = failure.error.message;
    if (failure.outlook == Outlook::kSettled) break;
    co_await pause(context_, back_off.next());
  }
  if (!closed_) fail(peer);
}

asio::awaitable<void> FlowBroker::watch(int peer) {
  co_await pause(context_, options_.limit);
  if (closed_) co_return;
  const Peer& entry = peers_[peer];
  if (entry.delivered < *entry.wanted) fail(peer);
}

Verdict FlowBroker::admit(const Claim& claim) {
  const bool peer_dials = claim.dialling_rank >= 0 && claim.dialling_rank < options_.rank;
  if (closed_ || !peer_dials || claim.flow >= kMostFlows) return Verdict::kTaken;
  Peer& entry = peers_[claim.dialling_rank];
  const bool too_many = entry.wanted && static_cast<int>(claim.flow) >= *entry.wanted;
  if (too_many || entry.taken.contains(claim.flow)) return Verdict::kTaken;
  return entry.proving.insert(claim.flow).second ? Verdict::kWelcome : Verdict::kBusy;
}

void FlowBroker::retract(const Claim& claim) {
  peers_[claim.dialling_rank].proving.erase(claim.flow);
}

void FlowBroker::welcome(Proven proven) {
  Peer& entry = peers_[proven.claim.dialling_rank];
  entry.proving.erase(proven.claim.flow);
  entry.taken.insert(proven.claim.flow);
  if (entry.wanted) {
    deliver(proven.claim.dialling_rank, proven.claim.flow, std::move(proven.socket));
  } else {
    entry.early.emplace(proven.claim.flow, std::move(proven.socket));
    handlers_.on_wanted(proven.claim.dialling_rank);
  }
}

void FlowBroker::deliver(int peer, std::uint32_t flow, FileDescriptor socket) {
  Peer& entry = peers_[peer];
  if (entry.failed) return;
  if (auto status = prepare(peer, socket.get()); !status) {
    entry.last_error = status.error().message;
    return fail(peer);
  }
  ++entry.delivered;
  handlers_.on_flow(peer, flow, std::move(socket));
}

core::Status FlowBroker::prepare(int peer, int socket) const {
  (void)set_silence_limit(socket, kFlowSilence);
  if (!options_.congestion.empty()) {
    if (auto status = set_congestion(socket, options_.congestion); !status) return status;
  }
  if (options_.rate > 0 && sits_elsewhere(peer)) return set_pacing(socket, options_.rate);
  return {};
}

void FlowBroker::fail(int peer) {
  Peer& entry = peers_[peer];
  if (std::exchange(entry.failed, true)) return;
  std::string text = fmt::format("{} of {} flows to rank {} (host {}) could be opened",
                                 entry.delivered, *entry.wanted, peer,
                                 members_[static_cast<std::size_t>(peer)].placement.host_name);
  if (!entry.last_error.empty()) text += "; the last attempt: " + entry.last_error;
  handlers_.on_failed(peer, {core::ErrorCode::kPeerLost, std::move(text), peer});
}

bool FlowBroker::sits_elsewhere(int peer) const {
  return members_[static_cast<std::size_t>(peer)].placement.host_identity !=
         members_[static_cast<std::size_t>(options_.rank)].placement.host_identity;
}

}  // namespace fasthorovod::transport
