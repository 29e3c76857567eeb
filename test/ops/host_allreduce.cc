#include "test/ops/host_allreduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ops/reduce.h"

namespace fasthorovod::ops {
namespace {

// The ranks of each host in their order, then the hosts in theirs.
Bytes reduced(const HostAllreduceSpec& spec, const std::vector<Bytes>& inputs) {
  Bytes result;
  for (const std::vector<int>& host : spec.hosts) {
    std::vector<Bytes> of_host;
    for (const int position : host) of_host.push_back(inputs[static_cast<std::size_t>(position)]);
    const Bytes sum = reference_reduce_many(of_host, spec.type, spec.reduction);
    if (result.empty()) {
      result = sum;
    } else {
      reference_reduce(result, sum, spec.type, spec.reduction);
    }
  }
  return result;
}

}  // namespace

HostAllreduce::HostAllreduce(HostAllreduceSpec spec) : spec_(std::move(spec)) {
  const int size = count_ranks(spec_.hosts);
  if (spec_.members.empty()) {
    spec_.members.resize(static_cast<std::size_t>(size));
    std::iota(spec_.members.begin(), spec_.members.end(), 0);
  }
  std::mt19937_64 random(spec_.seed);
  for (int position = 0; position < size; ++position) {
    inputs_.push_back(spec_.any_bits ? any_values(spec_.type, spec_.elements, random)
                                     : small_values(spec_.type, spec_.elements, random));
    outputs_.emplace_back(inputs_.back().size(), std::byte{0xEE});
  }
  expected_ = reduced(spec_, inputs_);
  if (spec_.in_place) outputs_ = inputs_;
  for (Bytes& output : outputs_) outputs_at_.emplace_back(output);
  if (spec_.in_place)
    inputs_at_ = outputs_at_;
  else
    for (Bytes& input : inputs_) inputs_at_.emplace_back(input);
}

std::size_t HostAllreduce::lent_bytes(int position) const {
  if (spec_.lent.empty()) return 0;
  const Lent& lent = spec_.lent[static_cast<std::size_t>(position)];
  const std::size_t bytes = inputs_.front().size();
  if (spec_.in_place) return lent.input || lent.output ? bytes : 0;
  return (lent.input ? bytes : 0) + (lent.output ? bytes : 0);
}

void HostAllreduce::lend(int position, std::span<std::byte> memory) {
  if (lent_bytes(position) == 0) return;
  const auto at = static_cast<std::size_t>(position);
  const auto move = [&memory](std::span<std::byte>& buffer) {
    const std::span<std::byte> to = memory.first(buffer.size());
    memory = memory.subspan(buffer.size());
    std::ranges::copy(buffer, to.begin());
    buffer = to;
  };
  const Lent& lent = spec_.lent[at];
  if (lent.output || spec_.in_place) move(outputs_at_[at]);
  if (spec_.in_place) {
    inputs_at_[at] = outputs_at_[at];
  } else if (lent.input) {
    move(inputs_at_[at]);
  }
}

HostLayout HostAllreduce::layout(int position) const {
  return lay_out(spec_.hosts, position, spec_.elements, core::size_of(spec_.type),
                 spec_.largest_area);
}

int HostAllreduce::member(int position) const {
  return spec_.members[static_cast<std::size_t>(position)];
}

HostOperation HostAllreduce::operation(int position, std::span<std::byte> area) {
  const auto at = static_cast<std::size_t>(position);
  HostOperation operation;
  operation.group = spec_.group;
  operation.sequence = spec_.sequence;
  operation.fingerprint = 77;
  operation.title = "all-reduce " + std::to_string(spec_.sequence);
  operation.description = "all-reduce of " + std::to_string(spec_.elements);
  operation.layout = layout(position);
  operation.members = spec_.members;
  operation.input = inputs_at_[at];
  operation.output = outputs_at_[at];
  operation.type = spec_.type;
  operation.reduction = spec_.reduction;
  operation.area = area;
  if (spec_.beyond_caches) operation.least_beyond_caches = 0;
  return operation;
}

void HostAllreduce::exchange(std::uint32_t piece,
                             const std::vector<std::span<std::byte>>& areas) const {
  const HostLayout any = layout(0);
  for (int stripe = 0; stripe < any.stripes; ++stripe) {
    const auto in_area = [&](int host) {
      return areas[static_cast<std::size_t>(any.owner(host, stripe))].data() +
             any.area_offset(piece, stripe);
    };
    const std::uint64_t bytes = any.stripe(piece, stripe).bytes;
    for (int host = 1; host < static_cast<int>(any.hosts.size()); ++host) {
      reduce_into(in_area(0), in_area(host), bytes / any.element_bytes, spec_.type,
                  spec_.reduction);
    }
    for (int host = 1; host < static_cast<int>(any.hosts.size()); ++host) {
      std::copy_n(in_area(0), bytes, in_area(host));
    }
  }
}

void HostAllreduce::check(int position) const {
  const auto at = static_cast<std::size_t>(position);
  EXPECT_TRUE(std::ranges::equal(outputs_at_[at], expected_))
      << "position " << position << " of " << size() << " on " << spec_.hosts.size() << " hosts, "
      << spec_.elements << ' ' << core::to_string(spec_.type) << ", "
      << core::to_string(spec_.reduction) << ", seed " << spec_.seed;
}

}  // namespace fasthorovod::ops
