#include "ops/host_loan.h"

#include <gtest/gtest.h>

#include <vector>

#include "ops/host_layout.h"
#include "ops/host_mate.h"
#include "transport/arena.h"

namespace fasthorovod::ops {
namespace {

using transport::Arena;

constexpr std::uint64_t kBytes = 2 * kSmallBytes;

/// An operation among two ranks, on `hosts` hosts.
HostOperation operation_of(std::uint64_t bytes, int hosts) {
  HostOperation operation;
  operation.layout = lay_out(
      hosts == 1 ? std::vector<std::vector<int>>{{0, 1}} : std::vector<std::vector<int>>{{0}, {1}},
      0, bytes, 1, 1U << 20);
  return operation;
}

TEST(HostLoan, IsWhatLiesInTheArena) {
  std::vector<std::byte> arena(3 * kBytes);
  std::vector<std::byte> elsewhere(kBytes);
  HostOperation operation = operation_of(kBytes, 1);
  operation.input = std::span(arena).subspan(100, kBytes);
  operation.output = elsewhere;
  HostLoan loan = loan_of(operation, arena);
  EXPECT_EQ(loan.input, 100U);
  EXPECT_FALSE(loan.lends_output());
  operation.output = std::span(arena).last(kBytes);
  EXPECT_EQ(loan_of(operation, arena).output, 2 * kBytes);
  // Half in it.
  EXPECT_FALSE(loan_of(operation, std::span(arena).first(3 * kBytes - 1)).lends_output());
}

TEST(HostLoan, LeavesOutWhatMatesCouldNotReadInTime) {
  std::vector<std::byte> arena(kBytes);
  HostOperation small = operation_of(kSmallBytes, 1);
  small.input = small.output = std::span(arena).first(kSmallBytes);
  EXPECT_FALSE(loan_of(small, arena).lends_input());
  EXPECT_FALSE(loan_of(small, arena).lends_output());
  HostOperation wide = operation_of(kBytes, 2);
  wide.input = wide.output = arena;
  EXPECT_TRUE(loan_of(wide, arena).lends_input());
  EXPECT_FALSE(loan_of(wide, arena).lends_output());
}

TEST(HostLoan, KnowsTheWholePagesOfAnOutput) {
  constexpr std::uint64_t kPage = Arena::kPage;
  const auto pages = [](std::uint64_t offset, std::uint64_t bytes) {
    return HostLoan{.output = offset}.pages(bytes);
  };
  EXPECT_EQ(pages(2 * kPage, 3 * kPage), (ByteSpan{0, 3 * kPage}));
  EXPECT_EQ(pages(2 * kPage + 1, 3 * kPage), (ByteSpan{kPage - 1, 2 * kPage}));
  EXPECT_EQ(pages(2 * kPage, 3 * kPage - 1), (ByteSpan{0, 2 * kPage}));
  EXPECT_EQ(pages(1, 2 * kPage - 2), ByteSpan{});
  EXPECT_EQ(HostLoan{.input = 0}.pages(kPage), ByteSpan{});
}

TEST(HostLoan, OfAMateMustLieInTheMatesArena) {
  const Arena arena = *Arena::create(HostTable::bytes() + (1U << 20));
  HostTable table(arena.bytes());
  const HostLayout layout = operation_of(kBytes, 1).layout;
  const std::uint64_t last = arena.bytes().size() - kBytes;
  std::uint64_t sequence = 0;
  const auto seen = [&](const HostLoan& loan) {
    HostEntry* entry = table.publish({{1, ++sequence}, 7, HostTable::bytes(), "", loan});
    HostMate mate({0, arena.bytes()});
    const HostMate::State state = mate.look({1, sequence}, 7, layout);
    table.retire(*entry);
    return state;
  };
  EXPECT_EQ(seen({.input = last, .output = 0}), HostMate::State::kHere);
  EXPECT_EQ(seen({.input = last + 1, .output = 0}), HostMate::State::kOther);
  EXPECT_EQ(seen({.input = 0, .output = HostLoan::kNothing - 1}), HostMate::State::kOther);
}

}  // namespace
}  // namespace fasthorovod::ops
