#include "test/ops/board_network.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fasthorovod::ops {

using transport::Arrival;
using transport::TakeOrder;

namespace {

bool is_chunk(const transport::FrameHeader& header) {
  return header.kind == transport::FrameKind::kData || header.kind == transport::FrameKind::kEarly;
}

}  // namespace

BoardNetwork::BoardNetwork(const Options& options)
    : options_(options), random_(options.seed), ranks_(static_cast<std::size_t>(options.size)) {
  for (int index = 0; index < options.size; ++index) {
    Rank* self = &rank(index);
    const OrderedHooks hooks{.disagreement = [this, index](const Disagreement& found) {
      disagreements_.push_back({index, found});
    }};
    self->board = std::make_unique<ChunkBoard>(
        [this, index](int peer, core::Error error) {
          faults_.push_back({index, peer, std::move(error)});
        },
        [self] { ++self->wakes; }, hooks);
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer == index) continue;
      for (int flow = 0; flow < options.flows; ++flow) {
        flows_.push_back({.from = index, .to = peer});
      }
    }
  }
}

void BoardNetwork::submit(int index, Operation operation) {
  Rank* self = &rank(index);
  const std::uint64_t number = self->submitted++;
  operation.done = [self, number](core::Status status) {
    self->in_flight.erase(number);
    self->outcomes.push_back(std::move(status));
  };
  self->waiting.push_back(std::move(operation));
}

std::size_t BoardNetwork::run() {
  std::size_t steps = 0;
  while (step()) ++steps;
  return steps;
}

bool BoardNetwork::step() {
  // A start for each rank, then both ends of each flow, then those of the test.
  const std::size_t actors = ranks_.size() + 2 * flows_.size() + others_.size();
  if (nap_left_ == 0) send_to_sleep(actors);
  if (options_.naps) --nap_left_;
  return act_any(actors, false) || (options_.naps && act_any(actors, true));
}

bool BoardNetwork::act_any(std::size_t actors, bool asleep) {
  const std::size_t first = random_() % actors;
  for (std::size_t i = 0; i < actors; ++i) {
    const std::size_t actor = (first + i) % actors;
    if (asleep_[actor] == asleep && act(actor)) return true;
  }
  return false;
}

void BoardNetwork::send_to_sleep(std::size_t actors) {
  asleep_.assign(actors, false);
  if (!options_.naps) return;
  for (std::size_t actor = 0; actor < actors; ++actor) asleep_[actor] = random_() % 2 == 0;
  nap_left_ = 1 + random_() % 500;
}

bool BoardNetwork::act(std::size_t actor) {
  if (actor < ranks_.size()) return start_next(ranks_[actor]);
  if (const std::size_t first = ranks_.size() + 2 * flows_.size(); actor >= first) {
    return others_[actor - first]();
  }
  Flow& flow = flows_[(actor - ranks_.size()) / 2];
  return (actor - ranks_.size()) % 2 == 0 ? write(flow) : read(flow);
}

bool BoardNetwork::start_next(Rank& rank) {
  const bool is_ahead =
      !rank.in_flight.empty() && rank.started - *rank.in_flight.begin() >= options_.window;
  if (rank.waiting.empty() || is_ahead) return false;
  rank.in_flight.insert(rank.started++);
  Operation operation = std::move(rank.waiting.front());
  rank.waiting.pop_front();
  rank.board->start(std::move(operation));
  return true;
}

bool BoardNetwork::write(Flow& flow) {
  const std::uint64_t room = room_of(flow);
  if (flow.closed || room == 0) return false;
  Rank& from = rank(flow.from);
  if (!flow.leaving) {
    if (!from.board->has_work(flow.to)) return false;
    flow.leaving =
        from.board->take(flow.to, random_() % 2 == 0 ? TakeOrder::kOldest : TakeOrder::kFreshFirst);
    if (!flow.leaving) return false;
    join_at_random(flow);
    flow.leaving->header.payload_bytes = flow.leaving->payload.size();
    flow.frames.push_back({flow.leaving->header, {}, std::nullopt, 0});
  }
  std::vector<std::byte>& written = flow.frames.back().written;
  const std::span<const std::byte> payload = flow.leaving->payload;
  const std::uint64_t piece = random_piece(std::min(room, payload.size() - written.size()));
  const auto begin = payload.begin() + static_cast<std::ptrdiff_t>(written.size());
  written.insert(written.end(), begin, begin + static_cast<std::ptrdiff_t>(piece));
  if (is_chunk(flow.leaving->header)) from.bytes_sent += piece;
  if (written.size() == payload.size()) {
    from.board->sent(flow.leaving->ticket);
    flow.leaving.reset();
  }
  return true;
}

void BoardNetwork::join_at_random(Flow& flow) {
  constexpr std::uint64_t kMostBits = 20;
  if (!options_.joins || random_() % 2 == 0) return;
  rank(flow.from).board->join_next(flow.to, *flow.leaving,
                                   std::uint64_t{1} << random_() % kMostBits);
  joined_ += flow.leaving->ticket.count - 1;
}

std::uint64_t BoardNetwork::room_of(const Flow& flow) const {
  std::uint64_t unread = 0;
  for (const Frame& frame : flow.frames) {
    unread += frame.written.size() - frame.read + (frame.arrival ? 0 : 1);
  }
  return options_.room - std::min(options_.room, unread);
}

bool BoardNetwork::read(Flow& flow) {
  if (flow.closed || flow.frames.empty()) return false;
  Frame& frame = flow.frames.front();
  if (!frame.arrival) return read_header(flow, frame);
  return read_payload(flow, frame);
}

bool BoardNetwork::read_header(Flow& flow, Frame& frame) {
  Rank& to = rank(flow.to);
  if (flow.parked_at == to.wakes || delayed_(flow.to, frame.header)) return false;
  core::Result<Arrival> arrival = to.board->arrive(flow.from, frame.header);
  if (!arrival) {
    faults_.push_back({flow.to, flow.from, arrival.error()});
    flow.closed = true;
    return true;
  }
  if (arrival->kind == Arrival::Kind::kPark) {
    flow.parked_at = to.wakes;
    ++parked_;
    return true;
  }
  flow.parked_at.reset();
  frame.arrival = *arrival;
  return true;
}

bool BoardNetwork::read_payload(Flow& flow, Frame& frame) {
  ChunkBoard& to = *rank(flow.to).board;
  const std::uint64_t total = frame.header.payload_bytes;
  const bool complete = frame.written.size() == total;
  std::uint64_t available = frame.written.size() - frame.read;
  if (frame.arrival->kind == Arrival::Kind::kAbsorb && !complete) {
    available -= available % transport::kGranule;
  }
  if (available == 0 && frame.read < total) return false;
  std::uint64_t piece = random_piece(available);
  if (frame.arrival->kind == Arrival::Kind::kAbsorb && frame.read + piece < total) {
    piece -= piece % transport::kGranule;
    if (piece == 0) piece = std::min<std::uint64_t>(transport::kGranule, available);
  }
  const std::span<const std::byte> bytes = std::span(frame.written).subspan(frame.read, piece);
  if (frame.arrival->kind == Arrival::Kind::kAbsorb) {
    to.absorb(frame.arrival->ticket, frame.read, bytes);
  } else if (piece > 0) {
    std::memcpy(frame.arrival->into.data() + frame.read, bytes.data(), piece);
  }
  frame.read += piece;
  if (frame.read == total) {
    to.received(frame.arrival->ticket);
    flow.frames.pop_front();
  }
  return true;
}

std::uint64_t BoardNetwork::random_piece(std::uint64_t available) {
  if (available == 0) return 0;
  // Half of the time all there is, so that large payloads do not take forever.
  return random_() % 2 == 0 ? available : 1 + random_() % available;
}

const std::vector<core::Status>& BoardNetwork::outcomes(int index) const {
  return ranks_[static_cast<std::size_t>(index)].outcomes;
}

std::uint64_t BoardNetwork::bytes_sent(int index) const {
  return ranks_[static_cast<std::size_t>(index)].bytes_sent;
}

}  // namespace fasthorovod::ops
