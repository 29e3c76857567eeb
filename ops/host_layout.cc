#include "ops/host_layout.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/algorithms/cut.h"

namespace fasthorovod::ops {
namespace {

constexpr std::uint64_t kStripeBytes = 128U << 10;  // one host
constexpr std::uint64_t kPiecesPerBuffer = 8;       // several hosts
constexpr std::uint64_t kSmallestPiece = 1U << 20;
constexpr std::uint64_t kLargestPiece = 8U << 20;

int count_stripes(const std::vector<std::vector<int>>& hosts) {
  const auto size = [](const std::vector<int>& ranks) { return ranks.size(); };
  return static_cast<int>(std::ranges::max(hosts, {}, size).size());
}

void find_self(HostLayout& layout, int position) {
  for (std::size_t host = 0; host < layout.hosts.size(); ++host) {
    const std::vector<int>& ranks = layout.hosts[host];
    const auto self = std::ranges::find(ranks, position);
    if (self == ranks.end()) continue;
    layout.host = static_cast<int>(host);
    layout.place = static_cast<int>(self - ranks.begin());
    return;
  }
  assert(false && "a rank must be on one of the hosts");
}

std::uint64_t piece_bytes_of(const HostLayout& layout, std::uint64_t largest_area) {
  const std::uint64_t wished =
      layout.crosses() ? std::clamp(layout.bytes / kPiecesPerBuffer, kSmallestPiece, kLargestPiece)
                       : static_cast<std::uint64_t>(layout.stripes) * kStripeBytes;
  const std::uint64_t bytes = std::min({wished, largest_area / kHostSlots, layout.bytes});
  return std::max(bytes - bytes % layout.element_bytes, layout.element_bytes);
}

Shape shape_of_piece(const HostLayout& layout, ByteSpan piece) {
  Shape shape;
  shape.size = layout.stripes;
  shape.element_bytes = layout.element_bytes;
  shape.elements = piece.bytes / layout.element_bytes;
  return shape;
}

}  // namespace

ByteSpan HostLayout::piece(std::uint32_t piece) const {
  const std::uint64_t offset = piece * piece_bytes;
  return {offset, std::min(piece_bytes, bytes - offset)};
}

ByteSpan HostLayout::stripe(std::uint32_t piece, int stripe) const {
  const ByteSpan whole = this->piece(piece);
  const ByteSpan part = even_part(shape_of_piece(*this, whole), stripe);
  return {whole.offset + part.offset, part.bytes};
}

std::uint64_t HostLayout::area_offset(std::uint32_t piece, int stripe) const {
  const std::uint64_t in_piece = this->stripe(piece, stripe).offset - this->piece(piece).offset;
  return piece % slots * piece_bytes + in_piece;
}

int HostLayout::owner(int on_host, int stripe) const {
  const std::vector<int>& ranks = hosts[static_cast<std::size_t>(on_host)];
  return ranks[static_cast<std::size_t>(stripe) % ranks.size()];
}

bool HostLayout::owns(int stripe) const {
  const auto ranks = static_cast<int>(hosts[static_cast<std::size_t>(host)].size());
  return stripe % ranks == place;
}

Shape HostLayout::shape_between_hosts(std::uint64_t chunk_bytes) const {
  Shape shape;
  shape.rank = host;
  shape.size = static_cast<int>(hosts.size());
  shape.element_bytes = element_bytes;
  shape.chunk_bytes = chunk_bytes;
  return shape;
}

HostLayout lay_out(std::vector<std::vector<int>> hosts, int position, std::uint64_t elements,
                   std::uint64_t element_bytes, std::uint64_t largest_area) {
  HostLayout layout;
  layout.hosts = std::move(hosts);
  layout.element_bytes = element_bytes;
  layout.bytes = elements * element_bytes;
  layout.stripes = layout.is_small() ? 1 : count_stripes(layout.hosts);
  find_self(layout, position);
  layout.piece_bytes = piece_bytes_of(layout, largest_area);
  const std::uint64_t pieces = (layout.bytes + layout.piece_bytes - 1) / layout.piece_bytes;
  layout.pieces = static_cast<std::uint32_t>(pieces);
  layout.slots = std::min(kHostSlots, layout.pieces);
  return layout;
}

}  // namespace fasthorovod::ops
