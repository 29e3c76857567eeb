// Layouts of 1 to 9 ranks on even and uneven hosts: every element has one owner a host, and nothing
// overlaps in an area.
#include "ops/host_layout.h"

#include <gtest/gtest.h>

#include <utility>

#include "test/ops/hosts.h"

namespace fasthorovod::ops {
namespace {

constexpr std::uint64_t kPlenty = 256U << 20;
constexpr std::uint64_t kMiB = 1U << 20;

// Stripes follow each other without a gap, from the first byte of the buffer to the last.
void expect_covered_once(const HostLayout& layout) {
  std::uint64_t covered = 0;
  for (std::uint32_t piece = 0; piece < layout.pieces; ++piece) {
    ASSERT_EQ(layout.piece(piece).offset, covered);
    for (int stripe = 0; stripe < layout.stripes; ++stripe) {
      const ByteSpan span = layout.stripe(piece, stripe);
      ASSERT_EQ(span.offset, covered);
      ASSERT_EQ(span.bytes % layout.element_bytes, 0U);
      covered += span.bytes;
    }
    ASSERT_EQ(layout.piece(piece).offset + layout.piece(piece).bytes, covered);
  }
  ASSERT_EQ(covered, layout.bytes);
}

void expect_places_apart(const HostLayout& layout) {
  for (std::uint32_t piece = 0; piece < layout.pieces; ++piece) {
    const std::uint64_t slot = piece % layout.slots * layout.piece_bytes;
    std::uint64_t used = slot;
    for (int stripe = 0; stripe < layout.stripes; ++stripe) {
      ASSERT_GE(layout.area_offset(piece, stripe), used);
      used = layout.area_offset(piece, stripe) + layout.stripe(piece, stripe).bytes;
    }
    ASSERT_LE(used, slot + layout.piece_bytes);
    ASSERT_LE(used, layout.area_bytes());
  }
}

void expect_one_owner_a_host(const std::vector<HostLayout>& layouts) {
  for (int stripe = 0; stripe < layouts[0].stripes; ++stripe) {
    std::vector<int> owners(layouts[0].hosts.size(), 0);
    for (std::size_t position = 0; position < layouts.size(); ++position) {
      const HostLayout& layout = layouts[position];
      const bool named = layout.owner(layout.host, stripe) == static_cast<int>(position);
      ASSERT_EQ(layout.owns(stripe), named);
      if (named) ++owners[static_cast<std::size_t>(layout.host)];
    }
    ASSERT_EQ(owners, std::vector<int>(owners.size(), 1));
  }
}

TEST(HostLayout, EveryElementHasOneOwnerAHost) {
  for (const Hosts& hosts : host_groups()) {
    for (const std::uint64_t elements : {0U, 1U, 2U, 7U, 97U, 65537U, 1000003U}) {
      for (const std::uint64_t area : {std::uint64_t{1}, std::uint64_t{40000}, kPlenty}) {
        std::vector<HostLayout> layouts;
        for (int position = 0; position < count_ranks(hosts); ++position) {
          // A tiny area cuts to single elements; a few are enough.
          const std::uint64_t count = area == 1 ? elements % 1000 : elements;
          layouts.push_back(lay_out(hosts, position, count, 4, area));
        }
        expect_covered_once(layouts[0]);
        expect_places_apart(layouts[0]);
        expect_one_owner_a_host(layouts);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(HostLayout, KnowsWhereARankIs) {
  const Hosts hosts = {{4, 0}, {2}, {1, 3, 5}};
  for (int host = 0; host < 3; ++host) {
    const auto& ranks = hosts[static_cast<std::size_t>(host)];
    for (int place = 0; std::cmp_less(place, ranks.size()); ++place) {
      const HostLayout layout =
          lay_out(hosts, ranks[static_cast<std::size_t>(place)], 10, 4, kPlenty);
      EXPECT_EQ(layout.host, host);
      EXPECT_EQ(layout.place, place);
      EXPECT_EQ(layout.stripes, 3);
      EXPECT_TRUE(layout.crosses());
    }
  }
  EXPECT_FALSE(lay_out({{0, 1}}, 1, 10, 4, kPlenty).crosses());
}

TEST(HostLayout, CutsPiecesByTheBufferTheHostsAndTheArea) {
  const auto piece_bytes = [](const Hosts& hosts, std::uint64_t bytes, std::uint64_t area) {
    return lay_out(hosts, 0, bytes / 8, 8, area).piece_bytes;
  };
  const Hosts one = {{0, 1, 2}};
  EXPECT_EQ(piece_bytes(one, 64 * kMiB, kPlenty), 3 * kMiB / 8);
  EXPECT_EQ(piece_bytes(one, 64 * kMiB, kMiB), kMiB / kHostSlots);
  EXPECT_EQ(piece_bytes(one, 1000, kPlenty), 1000U);  // no area for what is not there
  const Hosts two = {{0, 1}, {2}};
  EXPECT_EQ(piece_bytes(two, 4 * kMiB, kPlenty), kMiB);
  EXPECT_EQ(piece_bytes(two, 32 * kMiB, kPlenty), 4 * kMiB);
  EXPECT_EQ(piece_bytes(two, 256 * kMiB, kPlenty), 8 * kMiB);
  EXPECT_EQ(piece_bytes(two, 256 * kMiB, 8 * kMiB), 2 * kMiB);
  EXPECT_EQ(piece_bytes(two, 4 * kMiB, 4099), 1024U);  // whole elements
  EXPECT_EQ(piece_bytes(two, 4 * kMiB, 0), 8U);        // at least one
}

TEST(HostLayout, UsesNoMoreSlotsThanPieces) {
  EXPECT_EQ(lay_out({{0, 1}}, 0, 0, 4, kPlenty).slots, 0U);
  EXPECT_EQ(lay_out({{0, 1}}, 0, 0, 4, kPlenty).area_bytes(), 0U);
  EXPECT_EQ(lay_out({{0, 1}}, 0, 1, 4, kPlenty).area_bytes(), 4U);
  const HostLayout layout = lay_out({{0, 1}}, 0, 3 * kMiB / 16 + 1, 4, kPlenty);
  EXPECT_EQ(layout.pieces, 4U);
  EXPECT_EQ(layout.slots, 4U);
  EXPECT_EQ(lay_out({{0, 1}}, 0, 1U << 20, 4, kPlenty).slots, kHostSlots);
}

}  // namespace
}  // namespace fasthorovod::ops
