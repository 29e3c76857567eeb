#include "ops/ordered_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>

#include "core/mixer.h"

namespace fasthorovod::ops {
namespace {

using Blocks = std::vector<std::uint64_t>;

constexpr std::size_t kBlocksShown = 8;

std::string_view name_of(OrderedKind kind) {
  switch (kind) {
    case OrderedKind::kAllreduce:
      return "all_reduce";
    case OrderedKind::kBroadcast:
      return "broadcast";
    case OrderedKind::kAllgather:
      return "all_gather";
    case OrderedKind::kReduceScatter:
      return "reduce_scatter";
    case OrderedKind::kReduce:
      return "reduce";
    case OrderedKind::kGather:
      return "gather";
    case OrderedKind::kScatter:
      return "scatter";
    case OrderedKind::kAlltoall:
      return "all_to_all";
    case OrderedKind::kBarrier:
      return "barrier";
  }
  return "operation";
}

bool reduces(OrderedKind kind) {
  return kind == OrderedKind::kAllreduce || kind == OrderedKind::kReduceScatter ||
         kind == OrderedKind::kReduce;
}

bool has_root(OrderedKind kind) {
  return kind == OrderedKind::kBroadcast || kind == OrderedKind::kReduce ||
         kind == OrderedKind::kGather || kind == OrderedKind::kScatter;
}

bool has_blocks(OrderedKind kind) {
  return kind == OrderedKind::kAllgather || kind == OrderedKind::kReduceScatter ||
         kind == OrderedKind::kGather || kind == OrderedKind::kScatter;
}

core::Error refuse(const OrderedOperation& operation, const std::string& why) {
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("{}: {}", operation.title.empty() ? name_of(operation.kind) : operation.title,
                      why)};
}

// One check a line of the table in ordered.h: which span holds how many elements.
class SizeCheck final {
 public:
  SizeCheck(OrderedOperation& operation, const Group& group)
      : operation_(operation), group_(group), element_(core::size_of(operation.type)) {}

  core::Status run() {
    if (operation_.input.size() % element_ != 0 || operation_.output.size() % element_ != 0) {
      return refuse(operation_, fmt::format("a size is no multiple of {} bytes", element_));
    }
    switch (operation_.kind) {
      case OrderedKind::kAllreduce:
        return holds("output", output(), input());
      case OrderedKind::kReduce:
        return is_root() ? holds("output", output(), input()) : core::Status();
      case OrderedKind::kBroadcast:
        return {};
      case OrderedKind::kAllgather:
      case OrderedKind::kGather:
        return gathering();
      case OrderedKind::kReduceScatter:
      case OrderedKind::kScatter:
        return scattering();
      case OrderedKind::kAlltoall:
        return exchanging();
      case OrderedKind::kBarrier:
        break;
    }
    operation_.type = core::DataType::kUint8;
    operation_.input = {};
    operation_.output = {};
    return {};
  }

 private:
  [[nodiscard]] std::uint64_t input() const { return operation_.input.size() / element_; }
  [[nodiscard]] std::uint64_t output() const { return operation_.output.size() / element_; }
  [[nodiscard]] bool is_root() const { return operation_.root == group_.position; }
  [[nodiscard]] std::uint64_t own() const {
    return operation_.blocks[static_cast<std::size_t>(group_.position)];
  }

  core::Status holds(std::string_view what, std::uint64_t is, std::uint64_t should_be) const {
    if (is == should_be) return {};
    return refuse(operation_,
                  fmt::format("the {} holds {} elements instead of {}", what, is, should_be));
  }

  core::Status fill(Blocks& blocks, std::uint64_t each) const {
    const auto size = static_cast<std::size_t>(group_.size());
    if (blocks.empty()) blocks.assign(size, each);
    if (blocks.size() != size) {
      return refuse(operation_, fmt::format("{} blocks for {} ranks", blocks.size(), size));
    }
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max() / 8;
    if (std::ranges::any_of(blocks, [&](std::uint64_t block) { return block > kMost / size; })) {
      return refuse(operation_, "a block is too large");
    }
    return {};
  }

  static std::uint64_t sum(const Blocks& blocks) {
    return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0});
  }

  core::Status gathering() {
    if (auto status = fill(operation_.blocks, input()); !status) return status;
    if (auto status = holds("input", input(), own()); !status) return status;
    if (operation_.kind == OrderedKind::kGather && !is_root()) return {};
    return holds("output", output(), sum(operation_.blocks));
  }

  core::Status scattering() {
    if (auto status = fill(operation_.blocks, output()); !status) return status;
    if (auto status = holds("output", output(), own()); !status) return status;
    if (operation_.kind == OrderedKind::kScatter && !is_root()) return {};
    return holds("input", input(), sum(operation_.blocks));
  }

  core::Status exchanging() {
    const auto size = static_cast<std::uint64_t>(group_.size());
    Blocks& received = operation_.received_blocks;
    if (auto status = fill(operation_.blocks, input() / size); !status) return status;
    if (auto status = fill(received, output() / size); !status) return status;
    if (auto status = holds("input", input(), sum(operation_.blocks)); !status) return status;
    if (auto status = holds("output", output(), sum(received)); !status) return status;
    const auto position = static_cast<std::size_t>(group_.position);
    return holds("block from this rank itself", received[position], own());
  }

  OrderedOperation& operation_;
  const Group& group_;
  const std::size_t element_;
};

std::string shown(const Blocks& blocks) {
  if (std::ranges::all_of(blocks, [&](std::uint64_t block) { return block == blocks.front(); })) {
    return fmt::format("{} x {}", blocks.size(), blocks.front());
  }
  const std::span first(blocks.data(), std::min(blocks.size(), kBlocksShown));
  return fmt::format("[{}{}]", fmt::join(first, ", "), blocks.size() > kBlocksShown ? ", ..." : "");
}

std::uint64_t elements_of(const OrderedOperation& operation) {
  const bool sends_all = operation.kind != OrderedKind::kBroadcast;
  return (sends_all ? operation.input.size() : operation.output.size()) /
         core::size_of(operation.type);
}

}  // namespace

core::Status complete(OrderedOperation& operation, const Group& group) {
  if (has_root(operation.kind) && (operation.root < 0 || operation.root >= group.size())) {
    return refuse(operation,
                  fmt::format("root {} is not one of {} ranks", operation.root, group.size()));
  }
  if (reduces(operation.kind) && !core::has_reduction(operation.type, operation.reduction)) {
    return refuse(operation, fmt::format("{} has no {}", core::to_string(operation.type),
                                         core::to_string(operation.reduction)));
  }
  return SizeCheck(operation, group).run();
}

std::string describe(const OrderedOperation& operation) {
  std::string text(name_of(operation.kind));
  if (operation.kind == OrderedKind::kBarrier) return text;
  const std::string_view type = core::to_string(operation.type);
  if (operation.kind == OrderedKind::kAlltoall) {
    text += fmt::format(" of {} {} for {}", shown(operation.blocks), type,
                        shown(operation.received_blocks));
  } else if (has_blocks(operation.kind)) {
    text += fmt::format(" of {} {}", shown(operation.blocks), type);
  } else {
    text += fmt::format(" of {} {}", elements_of(operation), type);
  }
  if (reduces(operation.kind)) text += fmt::format(", {}", core::to_string(operation.reduction));
  if (has_root(operation.kind)) text += fmt::format(", root {}", operation.root);
  return text;
}

std::uint32_t fingerprint(const OrderedOperation& operation, std::uint64_t sequence) {
  core::Mixer mixer;
  mixer.add(operation.group);
  mixer.add(sequence);
  mixer.add(static_cast<std::uint64_t>(operation.kind));
  mixer.add(static_cast<std::uint64_t>(operation.type));
  if (reduces(operation.kind)) mixer.add(static_cast<std::uint64_t>(operation.reduction));
  if (has_root(operation.kind)) mixer.add(static_cast<std::uint64_t>(operation.root));
  if (has_blocks(operation.kind)) {
    for (const std::uint64_t block : operation.blocks) mixer.add(block);
  } else if (operation.kind != OrderedKind::kAlltoall) {  // there each pair compares its own bytes
    mixer.add(elements_of(operation));
  }
  return mixer.folded();
}

}  // namespace fasthorovod::ops
