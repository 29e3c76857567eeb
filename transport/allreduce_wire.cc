#include "transport/allreduce_wire.h"

#include <cmath>
#include <optional>

namespace fasthorovod::transport {
namespace {

using core::WireReader;
using core::WireWriter;

constexpr std::uint8_t kAuto = 255;

void write_choice(WireWriter& writer, const std::optional<core::AllreduceAlgorithm>& forced) {
  writer.u8(forced ? static_cast<std::uint8_t>(*forced) : kAuto);
}

std::optional<core::AllreduceAlgorithm> read_choice(WireReader& reader) {
  const std::uint8_t value = reader.u8();
  if (value == kAuto) return std::nullopt;
  if (value >= core::kAllreduceAlgorithms) reader.fail();
  return static_cast<core::AllreduceAlgorithm>(value);
}

bool read_flag(WireReader& reader) {
  const std::uint8_t value = reader.u8();
  if (value > 1) reader.fail();
  return value == 1;
}

// Calls visit(figure) for each of them, in the order of the wire.
template <typename Plan, typename Visitor>
void for_each_figure(Plan& plan, Visitor visit) {
  visit(plan.figures.hop_seconds);
  visit(plan.figures.flow_rate);
  visit(plan.figures.rank_rate);
  visit(plan.figures.moved_seconds);
  visit(plan.figures.reduced_seconds);
  visit(plan.figures.kept_seconds);
  visit(plan.figures.message_seconds);
  visit(plan.placement.cores_a_rank);
}

}  // namespace

void write_allreduce_wish(WireWriter& writer, const core::AllreduceWish& wish) {
  write_choice(writer, wish.forced);
  writer.u8(wish.deterministic ? 1 : 0);
}

core::AllreduceWish read_allreduce_wish(WireReader& reader) {
  const auto forced = read_choice(reader);
  return {.forced = forced, .deterministic = read_flag(reader)};
}

void write_allreduce_plan(WireWriter& writer, const core::AllreducePlan& plan) {
  write_choice(writer, plan.forced);
  writer.u8(plan.measured ? 1 : 0);
  for_each_figure(plan, [&](double figure) { writer.f64(figure); });
  writer.varint(static_cast<std::uint64_t>(plan.placement.flows));
  writer.varint(plan.limits.size());
  for (const core::AllreduceLimits& limits : plan.limits) {
    writer.varint(limits.one_hop);
    writer.varint(limits.two_hop);
  }
}

core::AllreducePlan read_allreduce_plan(WireReader& reader) {
  core::AllreducePlan plan;
  plan.forced = read_choice(reader);
  plan.measured = read_flag(reader);
  for_each_figure(plan, [&](double& figure) {
    figure = reader.f64();
    if (!std::isfinite(figure) || figure < 0) reader.fail();
  });
  plan.placement.flows = static_cast<int>(reader.varint32());
  const std::size_t sizes = reader.count(2);
  if (sizes > core::kMostRanksInAHop) reader.fail();
  for (std::size_t i = 0; i < sizes && reader.ok(); ++i) {
    const std::uint64_t one_hop = reader.varint();
    plan.limits.push_back({.one_hop = one_hop, .two_hop = reader.varint()});
  }
  return plan;
}

}  // namespace fasthorovod::transport
