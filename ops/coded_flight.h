// What the worker does of a coded exchange while the lanes move its bytes: encode the values
// segment by segment, answer each segment's codes once they have come from all ranks, decode the
// answers. See ops/algorithms/coded_exchange.h.
//
// Thread: owner (the worker); the lanes touch the wire buffer only between the gates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "ops/algorithms/coded_exchange.h"

namespace fasthorovod::ops {

class CodedFlight final {
 public:
  /// Of `values`, which stay what encoding left of them until they are decoded into; `wire` has
  /// layout.buffer_bytes() bytes. Both and the codec outlive this.
  CodedFlight(const compression::Codec& codec, const compression::CodecSetting& setting,
              const CodedLayout& layout, std::span<float> values, std::span<std::byte> wire);

  [[nodiscard]] const CodedLayout& layout() const { return layout_; }

  /// Makes the codes of a segment. All segments are encoded before the first is decoded.
  void encode(std::uint32_t segment);

  /// A piece of the schedule is over: answers what can be answered, in the order of segments, or
  /// decodes into `results` (as long as the values; they may be the same memory). How many gates
  /// are open now.
  [[nodiscard]] std::uint32_t piece_over(std::uint32_t piece, std::span<float> results);

 private:
  void answer(std::uint32_t segment);
  void decode(std::uint32_t segment, std::span<float> results);

  const compression::Codec& codec_;
  const compression::CodecSetting setting_;
  const CodedLayout layout_;
  const std::span<float> values_;
  const std::span<std::byte> wire_;
  std::vector<bool> codes_came_;  // by segment
  std::uint32_t answered_ = 0;    // segments, from the first
  std::vector<float> sums_;       // of a block
};

}  // namespace fasthorovod::ops
