// What the steps of an operation do to data.
#include <algorithm>
#include <cstring>

#include "ops/copy_past_caches.h"
#include "ops/host_runner.h"
#include "ops/reduce.h"

namespace fasthorovod::ops {

namespace {

// Of a result, in whole elements: few enough bytes that they, and the lines they go to, are still
// in the nearest caches when they are handed out; a quarter or four times as many are slower.
constexpr std::size_t kHandedOutAtOnce = 16384;

bool lends_output(const HostMate* mate) { return mate->output() != nullptr; }

ByteSpan common(ByteSpan a, ByteSpan b) {
  const std::uint64_t first = std::max(a.offset, b.offset);
  const std::uint64_t end = std::min(a.offset + a.bytes, b.offset + b.bytes);
  return end > first ? ByteSpan{first, end - first} : ByteSpan{b.offset, 0};
}

}  // namespace

void HostRunner::run(const HostStep& step) noexcept {
  const auto& [piece, stripe, offset, bytes] = step.block;
  const std::uint64_t in_buffer = operation_.layout.stripe(piece, stripe).offset + offset;
  const std::uint64_t in_area = operation_.layout.area_offset(piece, stripe) + offset;
  switch (step.kind) {
    case HostStep::Kind::kCopyIn:
      std::memcpy(operation_.area.data() + in_area, operation_.input.data() + in_buffer, bytes);
      break;
    case HostStep::Kind::kReduce:
      reduce(step.block, in_buffer, in_area);
      break;
    case HostStep::Kind::kCopyOut:
      copy_out(step.block, in_buffer, in_area);
      break;
  }
}

void HostRunner::copy_out(const HostBlock& block, std::uint64_t in_buffer,
                          std::uint64_t in_area) noexcept {
  const std::byte* from = operation_.area.data() + in_area;
  if (place_of(block.stripe) != operation_.layout.place) {
    const HostMate& mate = mate_of(block.stripe);
    from = mate.output() != nullptr ? mate.output() + in_buffer : mate.area() + in_area;
  }
  std::byte* const to = operation_.output.data() + in_buffer;
  const auto copy = [&](std::uint64_t first, std::uint64_t end) {
    if (past_caches_) return copy_past_caches(to + first, from + first, end - first);
    std::memcpy(to + first, from + first, end - first);
  };
  // What the owner has written there itself is left out.
  const ByteSpan written = common(loan_.pages(operation_.layout.bytes), {in_buffer, block.bytes});
  const std::uint64_t first = written.offset - in_buffer;
  copy(0, first);
  copy(first + written.bytes, block.bytes);
}

const std::byte* HostRunner::source(std::size_t place, std::uint64_t in_buffer,
                                    std::uint64_t in_area) const {
  if (static_cast<int>(place) == operation_.layout.place)
    return operation_.input.data() + in_buffer;
  const HostMate& mate = mates_[place];
  return mate.input() != nullptr ? mate.input() + in_buffer : mate.area() + in_area;
}

void HostRunner::reduce(const HostBlock& block, std::uint64_t in_buffer,
                        std::uint64_t in_area) noexcept {
  for (std::size_t place = 0; place < mates_.size(); ++place) {
    sources_[place] = source(place, in_buffer, in_area);
  }
  std::byte* const in_own_area = operation_.area.data() + in_area;
  std::byte* const result =
      operation_.layout.crosses() ? in_own_area : operation_.output.data() + in_buffer;
  if (std::ranges::any_of(others_, lends_output)) {
    reduce_and_hand_out(in_buffer, {result, block.bytes});
  } else {
    reduce_part({result, block.bytes});
  }
  // Not in one pass: stores to lines that a mate has read wait for it one by one, a copy's do not.
  if (mates_read_area()) std::memcpy(in_own_area, result, block.bytes);
}

// The sources move on behind it.
void HostRunner::reduce_part(std::span<std::byte> result) noexcept {
  reduce_many(result.data(), sources_, result.size() / operation_.layout.element_bytes,
              operation_.type, operation_.reduction);
  for (const std::byte*& source : sources_) source += result.size();
}

// To the outputs that mates lend. It says that it writes, and looks only then who still lends: that
// is the promise of host_loan.h.
void HostRunner::reduce_and_hand_out(std::uint64_t in_buffer,
                                     std::span<std::byte> result) noexcept {
  entry_->writes.store(1);
  lenders_.clear();
  for (const HostMate* mate : others_) {
    if (lends_output(mate) && mate->still_lends()) lenders_.push_back(mate);
  }
  for (std::size_t done = 0; done < result.size();) {
    const auto part = result.subspan(done, std::min(kHandedOutAtOnce, result.size() - done));
    reduce_part(part);
    for (const HostMate* mate : lenders_) hand_out(in_buffer + done, part, *mate);
    done += part.size();
  }
  entry_->writes.store(0);
}

void HostRunner::hand_out(std::uint64_t in_buffer, std::span<const std::byte> result,
                          const HostMate& mate) const noexcept {
  const auto [offset, bytes] =
      common(mate.output_pages(operation_.layout.bytes), {in_buffer, result.size()});
  if (bytes == 0) return;
  std::memcpy(mate.output() + offset, result.data() + (offset - in_buffer), bytes);
}

// Whether nothing that the step used was the caller's of a mate again meanwhile.
bool HostRunner::used_in_time(const HostStep& step) const {
  if (step.kind == HostStep::Kind::kReduce) {
    return std::ranges::all_of(others_, [](const HostMate* mate) {
      return (mate->input() == nullptr && mate->output() == nullptr) || mate->still_lends();
    });
  }
  if (step.kind == HostStep::Kind::kCopyIn) return true;
  if (place_of(step.block.stripe) == operation_.layout.place) return true;
  const HostMate& mate = mate_of(step.block.stripe);
  return mate.output() == nullptr || mate.still_lends();
}

}  // namespace fasthorovod::ops
