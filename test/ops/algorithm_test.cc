// Every algorithm of the table, simulated on real boards for 1 to 9 ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ops/algorithm_table.h"
#include "test/ops/collective.h"

namespace fasthorovod::ops {
namespace {

using core::DataType;
using core::OpKind;
using core::Reduction;

std::vector<std::uint64_t> element_counts(int size) {
  const auto ranks = static_cast<std::uint64_t>(size);
  return {0, 1, ranks - 1, ranks, ranks + 1, 97, 1009};
}

bool reduces(OrderedKind kind) {
  return kind == OrderedKind::kAllreduce || kind == OrderedKind::kReduceScatter ||
         kind == OrderedKind::kReduce;
}

// Operations after which all ranks hold the same.
bool is_alike_everywhere(OrderedKind kind) {
  return kind == OrderedKind::kAllreduce || kind == OrderedKind::kBroadcast ||
         kind == OrderedKind::kAllgather;
}

class EachAlgorithm : public testing::TestWithParam<std::tuple<std::size_t, int>> {
 protected:
  [[nodiscard]] const Algorithm& algorithm() const {
    return algorithm_table()[std::get<0>(GetParam())];
  }
  [[nodiscard]] int size() const { return std::get<1>(GetParam()); }

  [[nodiscard]] CollectiveSpec spec(std::uint64_t elements, std::uint64_t seed) const {
    CollectiveSpec spec;
    spec.algorithm = &algorithm();
    spec.network = {
        .size = size(), .flows = 1 + static_cast<int>(seed % 4), .window = 1, .seed = seed};
    spec.elements = elements;
    spec.root = static_cast<int>(seed) % size();
    spec.chunk_bytes = seed % 2 == 0 ? 64 : 1U << 20;
    return spec;
  }
};

TEST_P(EachAlgorithm, GivesTheRightAnswerAndSendsTheBytesOfItsFormula) {
  std::uint64_t seed = 0;
  for (const std::uint64_t elements : element_counts(size())) {
    for (int variant = 0; variant < 3; ++variant) {
      CollectiveSpec tried = spec(elements, ++seed);
      tried.blocks = variant;
      check_collective(tried);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(EachAlgorithm, WorksForEveryTypeAndReduction) {
  std::uint64_t seed = 100;
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      CollectiveSpec tried = spec(37, ++seed);
      tried.type = type;
      tried.reduction = reduction;
      check_collective(tried);
      if (HasFatalFailure()) return;
      if (!reduces(algorithm().kind)) break;
    }
  }
}

// NaN, infinities and numbers whose sums depend on the order: the bits may depend on nothing but
// the inputs.
TEST_P(EachAlgorithm, GivesTheSameBitsOnAllRanksHoweverItIsCutAndCarried) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    for (const Reduction reduction : reductions_of(type)) {
      std::vector<Bytes> first;
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CollectiveSpec tried = spec(211, seed);
        tried.type = type;
        tried.reduction = reduction;
        tried.any_bits = true;
        tried.root = 0;
        tried.chunk_bytes = 16ull << seed;
        const std::vector<Bytes> results = run_collective(tried);
        if (is_alike_everywhere(algorithm().kind)) {
          for (const Bytes& result : results) ASSERT_EQ(result, results[0]);
        }
        if (first.empty()) first = results;
        ASSERT_EQ(results, first) << core::to_string(type) << ' ' << core::to_string(reduction);
      }
    }
  }
}

TEST_P(EachAlgorithm, SupportsTheShapesItIsGiven) {
  EXPECT_TRUE(algorithm().supports(shape_of(spec(10, 1), 0)));
  EXPECT_FALSE(algorithm().purpose.empty());
  EXPECT_EQ(find_algorithm(algorithm().name), &algorithm());
}

std::string name_of(const testing::TestParamInfo<std::tuple<std::size_t, int>>& info) {
  std::string name(algorithm_table()[std::get<0>(info.param)].name);
  std::ranges::replace(name, '-', '_');
  return name + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Table, EachAlgorithm,
                         testing::Combine(testing::Range<std::size_t>(0, algorithm_table().size()),
                                          testing::Range(1, 10)),
                         name_of);

TEST(AlgorithmTable, ChoosesTheTreeForSmallBroadcastsAndTheChainForLargeOnes) {
  Shape shape{.size = 4, .element_bytes = 4, .elements = 16384, .block_elements = {}};
  EXPECT_EQ(choose(OpKind::kBroadcast, shape, {}).name, "binomial-broadcast");
  shape.elements += 1;
  EXPECT_EQ(choose(OpKind::kBroadcast, shape, {}).name, "chain-broadcast");
}

TEST(AlgorithmTable, HasAnAlgorithmForEveryOperation) {
  const Shape shape{.size = 3, .block_elements = {1, 2, 3}};
  for (int kind = 0; kind <= static_cast<int>(OrderedKind::kBarrier); ++kind) {
    EXPECT_EQ(choose(static_cast<OrderedKind>(kind), shape, {}).kind,
              static_cast<OrderedKind>(kind));
  }
  EXPECT_EQ(choose(OpKind::kAllgather, shape, {}).name, "direct-allgather");
  EXPECT_EQ(choose(OpKind::kJoin, shape, {}).name, "dissemination-barrier");
  EXPECT_EQ(find_algorithm("carrier-pigeon"), nullptr);
}

TEST(AlgorithmTable, GathersSmallBlocksDirectly) {
  const std::uint64_t most = (64U << 10) / 3;
  const Shape small{.size = 4, .element_bytes = 1, .block_elements = {0, 1, most, 2}};
  EXPECT_EQ(choose(OpKind::kAllgather, small, {}).name, "direct-allgather");
  const Shape large{.size = 4, .element_bytes = 1, .block_elements = {0, 1, most + 1, 2}};
  EXPECT_EQ(choose(OpKind::kAllgather, large, {}).name, "ring-allgather");
}

TEST(AlgorithmTable, HasEveryAllreduceThatAPlanMayChoose) {
  const Shape shape{.size = 4, .element_bytes = 4, .elements = 100, .block_elements = {}};
  core::AllreducePlan plan;
  EXPECT_EQ(choose(OrderedKind::kAllreduce, shape, plan).name, "ring-allreduce");
  for (const std::string_view name : core::allreduce_algorithm_names()) {
    plan.forced = core::parse_allreduce_algorithm(name);
    EXPECT_EQ(choose(OpKind::kAllreduce, shape, plan).name, name);
    EXPECT_EQ(choose(OpKind::kAllreduce, shape, plan).kind, OrderedKind::kAllreduce);
  }
}

TEST(AlgorithmTable, ChunksLieBetween32And253KiB) {
  EXPECT_EQ(default_chunk_bytes(0, 2, 4), 32U << 10);
  EXPECT_EQ(default_chunk_bytes(512U << 10, 2, 4), 64U << 10) << "one a flow";
  EXPECT_EQ(default_chunk_bytes(1U << 20, 2, 4), 64U << 10);
  EXPECT_EQ(default_chunk_bytes(4U << 20, 2, 4), 128U << 10) << "four a flow";
  EXPECT_EQ(default_chunk_bytes(64U << 20, 2, 4), 253U << 10);
  EXPECT_EQ(default_chunk_bytes(64U << 20, 0, 0), 253U << 10);
}

TEST(AlgorithmTable, CutsIntoLargerChunksWhereARankSendsToAllAtOnce) {
  const Shape shape{.size = 4, .element_bytes = 4, .elements = 256U << 10, .block_elements = {}};
  const Algorithm& ring = *find_algorithm("ring-allreduce");
  const Algorithm& two_hop = *find_algorithm("two-hop-allreduce");
  const Algorithm& one_hop = *find_algorithm("one-hop-allreduce");
  EXPECT_EQ(chunk_bytes(ring, shape, 4), 64U << 10);
  EXPECT_EQ(chunk_bytes(two_hop, shape, 4), 128U << 10) << "two to each of three others";
  EXPECT_EQ(chunk_bytes(two_hop, shape, 3), 253U << 10);
  EXPECT_EQ(chunk_bytes(one_hop, shape, 8), 253U << 10);
  Shape uneven = shape;
  uneven.elements += 3;
  uneven.rank = 3;
  Shape other = uneven;
  other.rank = 0;
  EXPECT_EQ(chunk_bytes(two_hop, uneven, 3), chunk_bytes(two_hop, other, 3));
  Shape small = shape;
  small.elements = 16U << 10;
  EXPECT_EQ(chunk_bytes(one_hop, small, 4), 64U << 10);
  small.size = 2;
  EXPECT_EQ(chunk_bytes(one_hop, small, 4), 32U << 10) << "both flows and more to one other";
}

}  // namespace
}  // namespace fasthorovod::ops
