#include <gtest/gtest.h>

#include <functional>

#include "test/core/simulated_ranks.h"

namespace fasthorovod::core {
namespace {

CoordinatorOptions options_for(int size) {
  CoordinatorOptions options;
  options.size = size;
  return options;
}

/// Three ranks submit "x"; rank 1 submits it changed. Returns the error that all of them got,
/// having checked that the name works again afterwards.
Error error_when_rank_1(const Request& base, const std::function<void(Request&)>& change) {
  SimulatedRanks ranks(options_for(3));
  Request changed = base;
  change(changed);
  ranks.submit(0, base);
  ranks.submit(1, changed);
  ranks.submit(2, base);
  ranks.settle();
  const Error error = ranks.error_everywhere("x");
  for (int step = 0; step < 2; ++step) {
    ranks.submit_everywhere(allreduce("x"));
    ranks.settle();
    EXPECT_TRUE(ranks.ran_everywhere("x"));
  }
  ranks.expect_same_order();
  return error;
}

std::string mismatch_when_rank_1(const Request& base, const std::function<void(Request&)>& change) {
  const Error error = error_when_rank_1(base, change);
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  return error.message;
}

TEST(Mismatch, OfShapesNamesTensorDifferenceAndRanks) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x", {3, 4}),
                                 [](Request& r) {
                                   r.shape = {4, 3};
                                 }),
            "tensor \"x\": ranks disagree about the shape: rank 0, 2: float32 [3, 4]; "
            "rank 1: float32 [4, 3]");
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x", {3}), [](Request& r) { r.shape = {}; }),
            "tensor \"x\": ranks disagree about the shape: rank 0, 2: float32 [3]; "
            "rank 1: float32 []");
}

TEST(Mismatch, OfAllgathersLeavesOutTheFirstDimension) {
  EXPECT_EQ(mismatch_when_rank_1(request_for(OpKind::kAllgather, "x", {3, 4}),
                                 [](Request& r) {
                                   r.shape = {9, 5};
                                 }),
            "tensor \"x\": ranks disagree about the shape: rank 0, 2: float32 [*, 4]; "
            "rank 1: float32 [*, 5]");
}

TEST(Mismatch, OfOperations) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r.op = OpKind::kAllgather; }),
            "tensor \"x\": ranks disagree about the operation: rank 0, 2: all-reduce; "
            "rank 1: all-gather");
}

TEST(Mismatch, OfTypes) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r.type = DataType::kInt64; }),
            "tensor \"x\": ranks disagree about the type: rank 0, 2: float32 [4]; "
            "rank 1: int64 [4]");
}

TEST(Mismatch, OfReductions) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r.reduction = Reduction::kMax; }),
            "tensor \"x\": ranks disagree about the reduction: rank 0, 2: sum; rank 1: max");
}

TEST(Mismatch, OfRoots) {
  EXPECT_EQ(
      mismatch_when_rank_1(request_for(OpKind::kBroadcast, "x"), [](Request& r) { r.root = 2; }),
      "tensor \"x\": ranks disagree about the root rank: rank 0, 2: root 0; rank 1: root 2");
}

TEST(Mismatch, OfScales) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r.prescale = 0.5; }),
            "tensor \"x\": ranks disagree about prescale: rank 0, 2: 1; rank 1: 0.5");
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r.postscale = 2; }),
            "tensor \"x\": ranks disagree about postscale: rank 0, 2: 1; rank 1: 2");
}

TEST(Mismatch, OfCodecs) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r.codec.id = CodecId::kFp16; }),
            "tensor \"x\": ranks disagree about the codec: rank 0, 2: none; rank 1: fp16");
  Request coded = allreduce("x");
  coded.codec = {CodecId::kTwobit, 0.5F};
  EXPECT_EQ(mismatch_when_rank_1(coded, [](Request& r) { r.codec.threshold = 0.25F; }),
            "tensor \"x\": ranks disagree about the codec: rank 0, 2: twobit(threshold=0.5); "
            "rank 1: twobit(threshold=0.25)");
}

TEST(Mismatch, OfTheRanksOfANewGroup) {
  EXPECT_EQ(mismatch_when_rank_1(add_group("x", {0, 1}),
                                 [](Request& r) {
                                   r.members = {1, 2};
                                 }),
            "tensor \"x\": ranks disagree about the ranks: rank 0, 2: [0, 1]; rank 1: [1, 2]");
}

TEST(Mismatch, OfBundles) {
  EXPECT_EQ(mismatch_when_rank_1(allreduce("x"), [](Request& r) { r = bundled(r, "g", 1); }),
            "tensor \"x\": ranks disagree about the bundle: rank 0, 2: alone; "
            "rank 1: \"g\" of 1");
}

TEST(Mismatch, NamesRanksThatSayTheSameTogether) {
  SimulatedRanks ranks(options_for(9));
  for (int rank = 0; rank < 9; ++rank) {
    Request request = allreduce("x", {rank == 3 ? 1 : 2});
    request.reduction = rank == 8 ? Reduction::kMin : Reduction::kSum;
    ranks.submit(rank, request);
  }
  ranks.settle();
  // The shape is told; that rank 8 differs in another way as well is for the next attempt.
  EXPECT_EQ(ranks.error_everywhere("x").message,
            "tensor \"x\": ranks disagree about the shape: rank 0 to 2, 4 to 8: float32 [2]; "
            "rank 3: float32 [1]");
}

TEST(Mismatch, IsFoundAgainstACachedRequest) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit_everywhere(allreduce("x", {2}));
  ranks.settle();
  ranks.submit(0, allreduce("x", {2}));
  ranks.submit(1, allreduce("x", {3}));
  ranks.settle();
  EXPECT_EQ(ranks.bits_sent(), 1u);
  EXPECT_EQ(ranks.error_everywhere("x").code, ErrorCode::kMismatch);
  ranks.submit_everywhere(allreduce("x", {3}));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("x"));
}

TEST(Mismatch, LeavesOtherTensorsOfTheSamePlanAlone) {
  SimulatedRanks ranks(options_for(2));
  ranks.submit_everywhere(allreduce("good"));
  ranks.submit(0, allreduce("x", {1}));
  ranks.submit(1, allreduce("x", {2}));
  ranks.settle();
  EXPECT_TRUE(ranks.ran_everywhere("good"));
  EXPECT_EQ(ranks.error_everywhere("x").code, ErrorCode::kMismatch);
}

TEST(Impossible, RequestsFailEvenIfAllRanksAgree) {
  const auto nothing = [](Request&) {};
  Request request = request_for(OpKind::kBroadcast, "x");
  request.root = 3;
  EXPECT_EQ(error_when_rank_1(request, nothing).message,
            "tensor \"x\": root 3 is not one of: rank 0 to 2");
  request = request_for(OpKind::kAllgather, "x", {});
  EXPECT_EQ(error_when_rank_1(request, nothing).message,
            "tensor \"x\": an all-gather needs at least one dimension");
  request = request_for(OpKind::kAllgather, "x", {std::int64_t{1} << 47, 1});
  EXPECT_EQ(error_when_rank_1(request, nothing).message,
            "tensor \"x\": the gathered tensor would be too large");
}

}  // namespace
}  // namespace fasthorovod::core
