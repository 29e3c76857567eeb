// Coded exchanges on simulated boards, 1 to 9 ranks, with a codec that anybody can add up by hand.
#include "ops/algorithms/coded_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "test/ops/coded_network.h"

namespace fasthorovod::ops {
namespace {

using compression::Codec;
using compression::CodecSetting;
using Values = std::vector<float>;

/// Sends whole numbers in one byte, keeps the fraction, and answers with sums in two.
class Rounding final : public Codec {
 public:
  [[nodiscard]] core::CodecId id() const override { return core::CodecId::kTwobit; }
  [[nodiscard]] bool keeps_residual() const override { return true; }
  [[nodiscard]] std::size_t code_bytes(std::size_t elements) const override { return elements; }
  [[nodiscard]] std::size_t answer_bytes(std::size_t elements, int) const override {
    return 2 * elements;
  }
  void encode(std::span<float> values, std::span<std::byte> codes,
              const CodecSetting&) const override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float whole = std::round(values[i]);
      codes[i] = static_cast<std::byte>(static_cast<std::int8_t>(whole));
      values[i] -= whole;
    }
  }
  void add(std::span<const std::byte> codes, std::span<float> sums) const override {
    ASSERT_EQ(codes.size(), sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += static_cast<float>(static_cast<std::int8_t>(codes[i]));
    }
  }
  void encode_answer(std::span<const float> sums, std::span<std::byte> answer,
                     const CodecSetting&) const override {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto sum = static_cast<std::int16_t>(sums[i]);
      std::memcpy(&answer[2 * i], &sum, sizeof sum);
    }
  }
  void decode_answer(std::span<const std::byte> answer, std::span<float> values,
                     const CodecSetting& setting) const override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int16_t sum = 0;
      std::memcpy(&sum, &answer[2 * i], sizeof sum);
      values[i] = static_cast<float>(sum * setting.factor);
    }
  }
};

const Rounding& rounding() {
  static const Rounding codec;
  return codec;
}

std::vector<Values> inputs_of(std::uint64_t elements, int ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> quarters(-400, 400);
  std::vector<Values> inputs(static_cast<std::size_t>(ranks), Values(elements));
  for (Values& values : inputs) {
    for (float& value : values) value = static_cast<float>(quarters(random)) / 4.0F;
  }
  return inputs;
}

Values expected_of(const std::vector<Values>& inputs, double factor) {
  Values sums(inputs.front().size());
  for (const Values& values : inputs) {
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += std::round(values[i]);
  }
  for (float& sum : sums) sum = static_cast<float>(sum * factor);
  return sums;
}

// What the head of the algorithm says.
std::uint64_t bytes_by_formula(const CodedLayout& layout) {
  std::uint64_t own = 0;
  for (std::uint32_t segment = 0; segment < layout.segments(); ++segment) {
    own += layout.share(segment, layout.rank()).count;
  }
  const auto others = static_cast<std::uint64_t>(layout.ranks() - 1);
  return rounding().code_bytes(layout.elements()) - rounding().code_bytes(own) +
         others * rounding().answer_bytes(own, layout.ranks());
}

class CodedExchangeAt : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CodedExchangeAt, testing::Range(1, 10));

TEST_P(CodedExchangeAt, SharesOutEveryElementOnce) {
  for (const std::uint64_t elements : {1U, 63U, 64U, 65U, 1000U, 4096U}) {
    const CodedLayout layout(rounding(), elements, 0, GetParam(), 512);
    std::uint64_t next = 0;
    for (std::uint32_t segment = 0; segment < layout.segments(); ++segment) {
      for (int owner = 0; owner < GetParam(); ++owner) {
        const ElementSpan share = layout.share(segment, owner);
        if (share.count == 0) continue;
        ASSERT_EQ(share.first, next);
        ASSERT_EQ(share.first % Codec::kGranule, 0U);
        next += share.count;
      }
    }
    EXPECT_EQ(next, elements);
  }
}

TEST_P(CodedExchangeAt, GivesTheRightAnswerAndSendsTheBytesOfItsFormula) {
  std::uint64_t seed = 0;
  for (const std::uint64_t elements : {0U, 1U, 63U, 64U, 65U, 700U, 4097U}) {
    const std::vector<Values> inputs = inputs_of(elements, GetParam(), ++seed);
    CodedNetwork network(rounding(), {.size = GetParam(), .seed = seed});
    network.submit({.segment_elements = seed % 2 == 0 ? 64U : 1024U,
                    .chunk_bytes = seed % 3 == 0 ? 16U : 4096U,
                    .setting = {.ranks = GetParam(), .factor = 0.5}},
                   inputs);
    network.boards().run();
    ASSERT_TRUE(network.boards().faults().empty()) << network.boards().faults()[0].error.message;
    ASSERT_TRUE(network.all_over()) << "it hangs, " << elements << " elements";
    for (int rank = 0; rank < GetParam(); ++rank) {
      ASSERT_EQ(network.results(0, rank), expected_of(inputs, 0.5)) << "rank " << rank;
      ASSERT_EQ(network.boards().bytes_sent(rank), bytes_by_formula(network.layout(0, rank)));
      const Values& given = inputs[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < given.size(); ++i) {
        ASSERT_EQ(network.left(0, rank)[i], given[i] - std::round(given[i]));
      }
    }
  }
}

TEST(CodedExchanges, NameWhoSendsCodesOrAnswersOfAWrongLength) {
  const CodedLayout layout(rounding(), 1000, 0, 2, 512);
  std::vector<std::byte> wire(layout.buffer_bytes());
  ChunkBoard board([](int, const core::Error&) {}, [] {});
  Operation operation;
  operation.group = wire_group(0, Door::kNamed);
  operation.sequence = 1;
  operation.title = "all-reduce of 'w'";
  operation.members = {4, 9};
  operation.buffer = wire;
  operation.schedule = coded_exchange(layout, 1U << 20);
  operation.piece_done = [](std::uint32_t) {};
  operation.done = [](const core::Status&) {};
  const std::vector<Receive> receives = operation.schedule.receives;
  board.start(std::move(operation));
  for (std::uint32_t transfer = 0; transfer < receives.size(); ++transfer) {
    for (const std::int64_t off : {-1, 1, 1 << 30}) {
      const transport::FrameHeader header{
          .group = wire_group(0, Door::kNamed),
          .sequence = 1,
          .transfer = transfer,
          .hop = receives[transfer].hop,
          .payload_bytes = receives[transfer].span.bytes + static_cast<std::uint64_t>(off)};
      const auto arrival = board.arrive(9, header);
      ASSERT_FALSE(arrival);
      EXPECT_EQ(arrival.error().code, core::ErrorCode::kProtocol);
      EXPECT_EQ(arrival.error().culprit, 9);
      EXPECT_NE(arrival.error().message.find("rank 9 sent a chunk of all-reduce of 'w'"),
                std::string::npos)
          << arrival.error().message;
    }
  }
  board.fail_all({core::ErrorCode::kShutdown, "over"});
}

// Of the world, whose chunks may park before their start, and of process sets.
TEST(CodedExchanges, OfSeveralGroupsNeverHangWhileRanksAndFlowsSleep) {
  std::uint64_t parked = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 4);
    CodedNetwork network(rounding(), {.size = ranks,
                                      .flows = 1 + static_cast<int>(seed % 3),
                                      .window = 1 + seed % 4,
                                      .seed = seed,
                                      .naps = true,
                                      .room = seed % 2 == 0 ? 64U : 1000U});
    std::vector<std::vector<Values>> all;
    for (std::uint64_t number = 0; number < 12; ++number) {
      all.push_back(inputs_of(50 * (number % 5), ranks, seed * 100 + number));
      const auto group = static_cast<std::uint32_t>(number % 3);
      network.submit({.group = wire_group(group, group == 0 ? Door::kNamed : Door::kOrdered),
                      .sequence = number / 3 + 1,
                      .chunk_bytes = 40,
                      .setting = {.ranks = ranks}},
                     all.back());
    }
    network.boards().run();
    ASSERT_TRUE(network.boards().faults().empty()) << network.boards().faults()[0].error.message;
    ASSERT_TRUE(network.all_over()) << "it hangs, seed " << seed;
    for (std::size_t number = 0; number < all.size(); ++number) {
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(network.results(number, rank), expected_of(all[number], 1.0)) << "seed " << seed;
      }
    }
    parked += network.boards().parked();
  }
  EXPECT_GT(parked, 0U);
}

}  // namespace
}  // namespace fasthorovod::ops
