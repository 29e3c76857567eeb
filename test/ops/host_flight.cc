#include "test/ops/host_flight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "ops/algorithms/host_one_hop.h"
#include "ops/algorithms/host_ring.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

constexpr std::byte kPoison{0xA5};

void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

HostLayout layout_of(const HostCollective& collective, const Hosts& hosts, int position) {
  HostLayout layout = lay_out(hosts, position, collective.elements, core::size_of(collective.type),
                              collective.largest_area);
  if (collective.one_stripe) layout.stripes = 1;
  layout.slots = std::min(layout.slots, collective.slots);
  return layout;
}

}  // namespace

std::vector<Bytes> inputs_of(const HostCollective& collective, int ranks, bool any_bits) {
  std::mt19937_64 random(7);
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(any_bits ? any_values(collective.type, collective.elements, random)
                              : small_values(collective.type, collective.elements, random));
  }
  return inputs;
}

Bytes expected_of(const HostCollective& collective, const std::vector<Bytes>& inputs) {
  return reference_reduce_in_turn(inputs, collective.type, collective.reduction);
}

HostFlight::HostFlight(const HostCollective& collective, const Hosts& hosts, int position,
                       Bytes input)
    : collective_(collective),
      layout_(layout_of(collective, hosts, position)),
      input_(std::move(input)),
      output_(input_.size()),
      area_(layout_.area_bytes() + (collective.one_hop ? host_one_hop_scratch(layout_) : 0),
            kPoison) {}

Operation HostFlight::operation() {
  Operation operation;
  operation.epoch = 3;
  operation.group = collective_.group;
  operation.sequence = collective_.sequence;
  operation.fingerprint = 0xF00D0000U + static_cast<std::uint32_t>(collective_.sequence);
  operation.title = "operation " + std::to_string(collective_.sequence);
  operation.description = operation.title;
  operation.schedule = collective_.one_hop ? host_one_hop(layout_, collective_.chunk_bytes)
                                           : host_ring(layout_, collective_.chunk_bytes);
  operation.early = collective_.early && may_go_early(operation.schedule);
  operation.members.resize(static_cast<std::size_t>(count_ranks(layout_.hosts)));
  std::iota(operation.members.begin(), operation.members.end(), 0);
  operation.buffer = std::span(area_).first(layout_.area_bytes());
  operation.scratch = std::span(area_).subspan(layout_.area_bytes());
  operation.type = collective_.type;
  operation.reduction = collective_.reduction;
  operation.held = true;
  operation.piece_done = [this](std::uint32_t piece) {
    EXPECT_FALSE(outcome_) << "a piece is over after the end";
    transferred_.insert(piece);
    told_.insert(piece);
  };
  operation.done = [this](core::Status status) {
    EXPECT_FALSE(outcome_) << "done twice";
    outcome_ = std::move(status);
    if (!*outcome_) std::ranges::fill(area_, kPoison);
  };
  return operation;
}

void HostFlight::start(ChunkBoard& board, std::vector<HostFlight*> mates) {
  board_ = &board;
  mates_ = std::move(mates);
  board.start(operation());
}

bool HostFlight::all_say(Fact fact, std::uint32_t piece) const {
  return std::ranges::all_of(mates_, [&](const HostFlight* mate) {
    return mate->facts_[static_cast<std::size_t>(fact)][piece % layout_.slots] >= piece + 1;
  });
}

void HostFlight::say(Fact fact, std::uint32_t piece) {
  facts_[static_cast<std::size_t>(fact)][piece % layout_.slots] = piece + 1;
}

std::byte* HostFlight::in_area(std::uint32_t piece, int stripe) {
  return area_.data() + layout_.area_offset(piece, stripe);
}

bool HostFlight::advance() {
  if (!started() || over() || (outcome_ && !*outcome_)) return false;
  return copy_out() || publish() || reduce() || copy_in() || open_first();
}

bool HostFlight::open_first() {
  if (opened_ || !std::ranges::all_of(mates_, &HostFlight::started)) return false;
  opened_ = true;
  board_->open_gates(collective_.group, collective_.sequence, 0);
  return true;
}

bool HostFlight::copy_in() {
  const std::uint32_t piece = next_in_;
  if (piece == layout_.pieces) return false;
  if (piece >= layout_.slots) {
    const std::uint32_t before = piece - layout_.slots;
    if (!all_say(Fact::kSummed, before) || !all_say(Fact::kCopied, before)) return false;
    EXPECT_TRUE(told_.contains(before)) << "a slot is used again before its piece is over";
  }
  for (int stripe = 0; stripe < layout_.stripes; ++stripe) {
    const ByteSpan span = layout_.stripe(piece, stripe);
    if (!layout_.owns(stripe))
      copy_bytes(in_area(piece, stripe), input_.data() + span.offset, span.bytes);
  }
  say(Fact::kIn, piece);
  ++next_in_;
  return true;
}

void HostFlight::reduce_stripe(std::uint32_t piece, int stripe) {
  const ByteSpan span = layout_.stripe(piece, stripe);
  if (span.bytes == 0) return;
  Bytes sum(span.bytes);
  for (std::size_t place = 0; place < mates_.size(); ++place) {
    const std::byte* from =
        mates_[place] == this ? input_.data() + span.offset : mates_[place]->in_area(piece, stripe);
    if (place == 0) {
      copy_bytes(sum.data(), from, span.bytes);
    } else {
      reduce_into(sum.data(), from, span.bytes / layout_.element_bytes, collective_.type,
                  collective_.reduction);
    }
  }
  copy_bytes(in_area(piece, stripe), sum.data(), span.bytes);
}

bool HostFlight::reduce() {
  const std::uint32_t piece = next_sum_;
  if (piece == next_in_ || !all_say(Fact::kIn, piece)) return false;
  for (int stripe = 0; stripe < layout_.stripes; ++stripe) {
    if (layout_.owns(stripe)) reduce_stripe(piece, stripe);
  }
  say(Fact::kSummed, piece);
  ++next_sum_;
  opened_ = true;
  board_->open_gates(collective_.group, collective_.sequence, piece + 1);
  return true;
}

bool HostFlight::publish() {
  if (transferred_.empty()) return false;
  const std::uint32_t piece = *transferred_.begin();
  transferred_.erase(piece);
  for (int stripe = 0; stripe < layout_.stripes; ++stripe) {
    const ByteSpan span = layout_.stripe(piece, stripe);
    if (layout_.owns(stripe))
      copy_bytes(output_.data() + span.offset, in_area(piece, stripe), span.bytes);
  }
  say(Fact::kOut, piece);
  return true;
}

bool HostFlight::copy_out() {
  const std::uint32_t piece = next_copied_;
  if (piece == next_sum_ || !all_say(Fact::kOut, piece)) return false;
  for (int stripe = 0; stripe < layout_.stripes; ++stripe) {
    const ByteSpan span = layout_.stripe(piece, stripe);
    const auto owner = static_cast<std::size_t>(stripe) % mates_.size();
    if (!layout_.owns(stripe)) {
      copy_bytes(output_.data() + span.offset, mates_[owner]->in_area(piece, stripe), span.bytes);
    }
  }
  say(Fact::kCopied, piece);
  ++next_copied_;
  return true;
}

bool HostFlight::over() const { return outcome_ && (!*outcome_ || next_copied_ == layout_.pieces); }

bool HostFlight::untouched_since_failure() const {
  return std::ranges::all_of(area_, [](std::byte byte) { return byte == kPoison; });
}

}  // namespace fasthorovod::ops
