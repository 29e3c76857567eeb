#include "ops/coded_flight.h"

#include <algorithm>

namespace fasthorovod::ops {
namespace {

using compression::Codec;

// Elements worked on at once: their values and codes stay in the L2 cache.
constexpr std::uint64_t kBlock = 16384;
static_assert(kBlock % Codec::kGranule == 0);

// Calls visit(block) for the blocks of a run of elements.
template <typename Visitor>
void for_each_block(ElementSpan span, Visitor visit) {
  for (std::uint64_t done = 0; done < span.count; done += kBlock) {
    visit(ElementSpan{span.first + done, std::min(kBlock, span.count - done)});
  }
}

std::span<float> part(std::span<float> values, ElementSpan span) {
  return values.subspan(span.first, span.count);
}

std::span<std::byte> part(std::span<std::byte> bytes, ByteSpan span) {
  return bytes.subspan(span.offset, span.bytes);
}

}  // namespace

CodedFlight::CodedFlight(const Codec& codec, const compression::CodecSetting& setting,
                         const CodedLayout& layout, std::span<float> values,
                         std::span<std::byte> wire)
    : codec_(codec),
      setting_(setting),
      layout_(layout),
      values_(values),
      wire_(wire),
      codes_came_(layout.segments()),
      sums_(kBlock) {}

void CodedFlight::encode(std::uint32_t segment) {
  for_each_block(layout_.segment(segment), [this](ElementSpan block) {
    codec_.encode(part(values_, block), part(wire_, layout_.codes(block)), setting_);
  });
}

std::uint32_t CodedFlight::piece_over(std::uint32_t piece, std::span<float> results) {
  const std::uint32_t segments = layout_.segments();
  if (piece >= segments) {
    decode(piece - segments, results);
  } else {
    codes_came_[piece] = true;
    while (answered_ < segments && codes_came_[answered_]) answer(answered_++);
  }
  return segments + answered_;
}

// In the order of ranks, so that floating-point sums are the same wherever they are made.
void CodedFlight::answer(std::uint32_t segment) {
  const ElementSpan own = layout_.share(segment, layout_.rank());
  for_each_block(own, [&](ElementSpan block) {
    const std::span<float> sums = std::span(sums_).first(block.count);
    std::ranges::fill(sums, 0.0F);
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      ByteSpan codes = layout_.codes_from(rank, segment);
      codes.offset += codec_.code_bytes(block.first - own.first);
      codes.bytes = codec_.code_bytes(block.count);
      codec_.add(part(wire_, codes), sums);
    }
    codec_.encode_answer(sums, part(wire_, layout_.answer(block)), setting_);
  });
}

// A segment's answers come from several owners, whose shares begin at whole granules.
void CodedFlight::decode(std::uint32_t segment, std::span<float> results) {
  for_each_block(layout_.segment(segment), [&](ElementSpan block) {
    codec_.decode_answer(part(wire_, layout_.answer(block)), part(results, block), setting_);
  });
}

}  // namespace fasthorovod::ops
