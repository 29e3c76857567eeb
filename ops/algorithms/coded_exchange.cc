#include "ops/algorithms/coded_exchange.h"

#include <algorithm>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {
namespace {

using compression::Codec;

// 4 MiB of values: long enough that a share among few ranks fills a chunk, short enough that the
// first codes leave early.
constexpr std::uint64_t kSegmentElements = std::uint64_t{1} << 20;
// Among many ranks: the least that an owner gets of a segment, 16 KiB as codes of two bits.
constexpr std::uint64_t kLeastShare = std::uint64_t{1} << 16;

std::uint64_t in_granules(std::uint64_t elements) {
  return (elements + Codec::kGranule - 1) / Codec::kGranule * Codec::kGranule;
}

std::uint64_t suitable_segment(int ranks) {
  return std::max(kSegmentElements, kLeastShare * static_cast<std::uint64_t>(ranks));
}

}  // namespace

CodedLayout::CodedLayout(const Codec& codec, std::uint64_t elements, int rank, int ranks,
                         std::uint64_t segment_elements)
    : codec_(codec),
      elements_(elements),
      rank_(rank),
      ranks_(ranks),
      segment_elements_(segment_elements),
      segments_(static_cast<std::uint32_t>((elements + segment_elements - 1) / segment_elements)) {}

CodedLayout::CodedLayout(const Codec& codec, std::uint64_t elements, int rank, int ranks)
    : CodedLayout(codec, elements, rank, ranks, suitable_segment(ranks)) {}

ElementSpan CodedLayout::segment(std::uint32_t segment) const {
  const std::uint64_t first = segment * segment_elements_;
  return {first, std::min(segment_elements_, elements_ - first)};
}

ElementSpan CodedLayout::share(std::uint32_t segment, int owner) const {
  const auto [first, count] = this->segment(segment);
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  const std::uint64_t part = in_granules((count + ranks - 1) / ranks);
  const std::uint64_t begin = std::min(part * static_cast<std::uint64_t>(owner), count);
  return {first + begin, std::min(part, count - begin)};
}

// Room for the codes of a rank's largest share of each segment.
std::uint64_t CodedLayout::share_stride() const {
  if (segments_ == 0) return 0;
  return codec_.code_bytes(share(0, 0).count);
}

ByteSpan CodedLayout::codes(ElementSpan elements) const {
  return {codec_.code_bytes(elements.first), codec_.code_bytes(elements.count)};
}

ByteSpan CodedLayout::codes_from(int rank, std::uint32_t segment) const {
  const ElementSpan own = share(segment, rank_);
  if (rank == rank_) return codes(own);
  const std::uint64_t place = static_cast<std::uint64_t>(rank) * segments_ + segment;
  return {codec_.code_bytes(elements_) + place * share_stride(), codec_.code_bytes(own.count)};
}

ByteSpan CodedLayout::answer(ElementSpan elements) const {
  const std::uint64_t begin = codec_.code_bytes(elements_) +
                              static_cast<std::uint64_t>(ranks_) * segments_ * share_stride();
  return {begin + codec_.answer_bytes(elements.first, ranks_),
          codec_.answer_bytes(elements.count, ranks_)};
}

std::uint64_t CodedLayout::buffer_bytes() const {
  const ByteSpan answers = answer({0, elements_});
  return answers.offset + answers.bytes;
}

namespace {

class Builder {
 public:
  Builder(const CodedLayout& layout, std::uint64_t chunk_bytes) : layout_(layout) {
    shape_.rank = layout.rank();
    shape_.size = layout.ranks();
    shape_.chunk_bytes = chunk_bytes;
    schedule_.pieces = 2 * layout.segments();
    schedule_.slots = schedule_.pieces;  // each has memory of its own
    schedule_.receives_early = true;
  }

  Schedule build() && {
    for (std::uint32_t segment = 0; segment < layout_.segments(); ++segment) add_codes(segment);
    for (std::uint32_t segment = 0; segment < layout_.segments(); ++segment) add_answers(segment);
    return std::move(schedule_);
  }

 private:
  void add_codes(std::uint32_t segment) {
    const std::uint32_t piece = layout_.codes_piece(segment);
    for (int distance = 1; distance < shape_.size; ++distance) {
      const int to = shape_.neighbour(distance);
      send(to, layout_.codes(layout_.share(segment, to)), 0, piece);
      const int from = shape_.neighbour(-distance);
      receive(from, layout_.codes_from(from, segment), 0, piece);
    }
  }

  void add_answers(std::uint32_t segment) {
    const std::uint32_t piece = layout_.answer_piece(segment);
    for (int distance = 1; distance < shape_.size; ++distance) {
      send(shape_.neighbour(distance), layout_.answer(layout_.share(segment, shape_.rank)), 1,
           piece);
      const int from = shape_.neighbour(-distance);
      receive(from, layout_.answer(layout_.share(segment, from)), 1, piece);
    }
  }

  void send(int to, ByteSpan span, std::uint32_t hop, std::uint32_t piece) {
    for (const ByteSpan& chunk : chunks_of(shape_, span)) {
      schedule_.sends[add_send(schedule_, to, chunk, hop)].piece = piece;
    }
  }

  void receive(int from, ByteSpan span, std::uint32_t hop, std::uint32_t piece) {
    for (const ByteSpan& chunk : chunks_of(shape_, span)) {
      const std::uint32_t added = add_receive(schedule_, from, chunk, hop, Action::kCopy);
      schedule_.receives[added].piece = piece;
    }
  }

  const CodedLayout& layout_;
  Shape shape_;
  Schedule schedule_;
};

}  // namespace

Schedule coded_exchange(const CodedLayout& layout, std::uint64_t chunk_bytes) {
  return Builder(layout, chunk_bytes).build();
}

}  // namespace fasthorovod::ops
