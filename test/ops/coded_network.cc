#include "test/ops/coded_network.h"

#include <algorithm>
#include <numeric>

namespace fasthorovod::ops {

CodedNetwork::CodedNetwork(const compression::Codec& codec, BoardNetwork::Options network)
    : codec_(codec),
      options_(network),
      boards_(network),
      parts_(static_cast<std::size_t>(network.size)) {
  for (int rank = 0; rank < network.size; ++rank) {
    boards_.add_actor([this, rank] { return act(rank); });
  }
}

void CodedNetwork::submit(const CodedExchange& exchange,
                          const std::vector<std::vector<float>>& inputs) {
  for (int rank = 0; rank < options_.size; ++rank) {
    auto part = std::make_unique<Part>();
    part->exchange = exchange;
    part->values = inputs[static_cast<std::size_t>(rank)];
    part->results.resize(part->values.size());
    const CodedLayout layout(codec_, part->values.size(), rank, options_.size,
                             exchange.segment_elements);
    part->wire.resize(layout.buffer_bytes());
    part->flight.emplace(codec_, exchange.setting, layout, part->values, part->wire);
    parts_[static_cast<std::size_t>(rank)].push_back(std::move(part));
  }
}

bool CodedNetwork::all_over() const {
  return std::ranges::all_of(parts_, [](const auto& own) {
    return std::ranges::all_of(own, [](const auto& part) { return part->over; });
  });
}

// One small thing: what is under way first, so that several exchanges overlap.
bool CodedNetwork::act(int rank) {
  for (const auto& part : parts_[static_cast<std::size_t>(rank)]) {
    if (part->started && work(*part, rank)) return true;
    if (part->started || !may_start(rank, *part)) continue;
    start(rank, *part);
    return true;
  }
  return false;
}

bool CodedNetwork::work(Part& part, int rank) {
  const CodedExchange& exchange = part.exchange;
  if (part.encoded < part.flight->layout().segments()) {
    part.flight->encode(part.encoded++);
    boards_.board(rank).open_gates(exchange.group, exchange.sequence, part.encoded);
    return true;
  }
  if (part.pieces.empty()) return false;
  const std::uint32_t piece = part.pieces.front();
  part.pieces.pop_front();
  const std::uint32_t opened = part.flight->piece_over(piece, part.results);
  boards_.board(rank).open_gates(exchange.group, exchange.sequence, opened);
  return true;
}

// As the executor: those of a group in one order, a few at a time, each encoded before the next.
bool CodedNetwork::may_start(int rank, const Part& part) const {
  std::size_t in_flight = 0;
  for (const auto& other : parts_[static_cast<std::size_t>(rank)]) {
    if (other->started && other->encoded < other->flight->layout().segments()) return false;
    if (other->exchange.group != part.exchange.group) continue;
    if (!other->started) return other.get() == &part && in_flight < options_.window;
    in_flight += other->over ? 0 : 1;
  }
  return false;
}

void CodedNetwork::start(int rank, Part& part) {
  Operation operation;
  operation.group = part.exchange.group;
  operation.sequence = part.exchange.sequence;
  operation.title = "a coded exchange";
  operation.members.resize(static_cast<std::size_t>(options_.size));
  std::iota(operation.members.begin(), operation.members.end(), 0);
  operation.buffer = part.wire;
  operation.schedule = coded_exchange(part.flight->layout(), part.exchange.chunk_bytes);
  operation.piece_done = [&part](std::uint32_t piece) { part.pieces.push_back(piece); };
  operation.done = [&part](const core::Status& status) { part.over = static_cast<bool>(status); };
  part.started = true;
  boards_.board(rank).start(std::move(operation));
}

}  // namespace fasthorovod::ops
