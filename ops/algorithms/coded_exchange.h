// Coded exchange: an all-reduce whose bytes a codec makes fewer (compression/codec.h).
//
// Idea: every rank owns a share. Each sends the codes of everybody's share to its owner; the owner
// adds them and sends the answer to all. So a value is encoded once on the way up and its sum once
// on the way down, whatever the number of ranks; a ring would encode partial sums at each hop.
//
// The elements are cut into segments, so that encoding, moving and adding overlap. The schedule has
// a piece with a gate for the codes of each segment, then one for each segment's answers.
//
// Steps: 2. Bytes sent by a rank: codes(n) - codes(own share) + (p - 1) answers(own share), which
// for twobit among p <= 7 ranks is about n (p - 1) / p * (1/4 + 1/2).
//
// Source: scatter-reduce and all-gather, as CGX and 1-bit Adam use it (Markov et al., "CGX:
// Adaptive System Support for Communication-Efficient Deep Learning", 2022).
#pragma once

#include <cstdint>

#include "compression/codec.h"
#include "ops/schedule.h"

namespace fasthorovod::ops {

/// A run of an operation's elements.
struct ElementSpan {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  friend bool operator==(const ElementSpan&, const ElementSpan&) = default;
};

/// Where everything of a coded exchange lies. The buffer holds the codes of all elements, then the
/// codes that come for the own share from each rank, then the answers of all elements. The same on
/// all ranks but for the rank. Immutable; the codec outlives it.
class CodedLayout final {
 public:
  /// `rank` is a position in the group. A segment has so many elements, a multiple of
  /// Codec::kGranule; the last one has what is left.
  CodedLayout(const compression::Codec& codec, std::uint64_t elements, int rank, int ranks,
              std::uint64_t segment_elements);
  /// The same with segments as large as suits so many ranks.
  CodedLayout(const compression::Codec& codec, std::uint64_t elements, int rank, int ranks);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] std::uint32_t segments() const { return segments_; }
  [[nodiscard]] std::uint64_t buffer_bytes() const;

  [[nodiscard]] ElementSpan segment(std::uint32_t segment) const;
  /// What `owner` adds of a segment; may be empty.
  [[nodiscard]] ElementSpan share(std::uint32_t segment, int owner) const;

  /// The own codes of a run of elements that begins at a multiple of Codec::kGranule.
  [[nodiscard]] ByteSpan codes(ElementSpan elements) const;
  /// The codes of the own share of a segment from `rank`; for the own rank, its own codes.
  [[nodiscard]] ByteSpan codes_from(int rank, std::uint32_t segment) const;
  /// The answer for a run of elements that begins at such a multiple.
  [[nodiscard]] ByteSpan answer(ElementSpan elements) const;

  /// The pieces of the schedule.
  [[nodiscard]] std::uint32_t codes_piece(std::uint32_t segment) const { return segment; }
  [[nodiscard]] std::uint32_t answer_piece(std::uint32_t segment) const {
    return segments_ + segment;
  }

 private:
  [[nodiscard]] std::uint64_t share_stride() const;

  const compression::Codec& codec_;
  std::uint64_t elements_;
  int rank_;
  int ranks_;
  std::uint64_t segment_elements_;
  std::uint32_t segments_;
};

/// The schedule over a buffer of layout.buffer_bytes() bytes.
Schedule coded_exchange(const CodedLayout& layout, std::uint64_t chunk_bytes);

}  // namespace fasthorovod::ops
