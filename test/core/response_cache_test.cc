#include "core/response_cache.h"

#include <gtest/gtest.h>

namespace fasthorovod::core {
namespace {

Request request_of(const std::string& name, std::vector<std::int64_t> shape) {
  Request request;
  request.name = name;
  request.shape = std::move(shape);
  return request;
}

Plan inserting(std::uint32_t position, const Request& request) {
  Plan plan;
  plan.cache_changes.push_back({position, true, request, {}});
  return plan;
}

Plan erasing(std::uint32_t position) {
  Plan plan;
  plan.cache_changes.push_back({position, false});
  return plan;
}

Plan using_position(std::uint32_t position) {
  Plan plan;
  plan.items.emplace_back();
  plan.items[0].tensors.push_back({"", {}, {}, position});
  return plan;
}

TEST(ResponseCache, FindsExactlyTheRequestThatWasStored) {
  ResponseCache cache;
  const Request request = request_of("a", {3, 4});
  Plan plan = inserting(5, request);
  ASSERT_TRUE(cache.apply(plan, 0).has_value());
  EXPECT_EQ(cache.find(request), 5u);
  EXPECT_EQ(*cache.at(5), request);
  EXPECT_EQ(cache.size(), 1u);
  Request other = request;
  other.shape = {4, 3};
  EXPECT_FALSE(cache.find(other).has_value());
  other = request;
  other.prescale = 2;
  EXPECT_FALSE(cache.find(other).has_value());
  EXPECT_FALSE(cache.find(request_of("b", {3, 4})).has_value());
  EXPECT_EQ(cache.at(4), nullptr);
  EXPECT_EQ(cache.at(6), nullptr);
}

TEST(ResponseCache, FillsInTensorsThatTravelledByPosition) {
  ResponseCache cache;
  Plan plan = inserting(2, request_of("a", {7}));
  plan.items = using_position(2).items;
  ASSERT_TRUE(cache.apply(plan, 0).has_value());
  EXPECT_EQ(plan.items[0].tensors[0].name, "a");
  EXPECT_EQ(plan.items[0].tensors[0].shape, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(plan.items[0].tensors[0].cache_position, 2u);
}

TEST(ResponseCache, StoresEachRanksOwnRowsOfAnAllgather) {
  Request request = request_of("a", {2, 5});
  request.op = OpKind::kAllgather;
  Plan plan = inserting(0, request);
  plan.cache_changes[0].first_dimensions = {2, 9};
  ResponseCache cache;
  ASSERT_TRUE(cache.apply(plan, 1).has_value());
  EXPECT_EQ(cache.at(0)->shape, (std::vector<std::int64_t>{9, 5}));
  Plan later = using_position(0);
  ASSERT_TRUE(cache.apply(later, 1).has_value());
  EXPECT_EQ(later.items[0].tensors[0].shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(later.items[0].tensors[0].first_dimensions, (std::vector<std::int64_t>{2, 9}));
}

TEST(ResponseCache, FollowsATensorThatMovesWhicheverChangeComesFirst) {
  for (const bool erase_first : {true, false}) {
    ResponseCache cache;
    Plan first = inserting(0, request_of("a", {1}));
    ASSERT_TRUE(cache.apply(first, 0).has_value());
    Plan move;
    move.cache_changes = {erasing(0).cache_changes[0],
                          inserting(1, request_of("a", {2})).cache_changes[0]};
    if (!erase_first) std::swap(move.cache_changes[0], move.cache_changes[1]);
    ASSERT_TRUE(cache.apply(move, 0).has_value());
    EXPECT_EQ(cache.find(request_of("a", {2})), 1u);
    EXPECT_EQ(cache.at(0), nullptr);
    EXPECT_EQ(cache.size(), 1u);
  }
}

TEST(ResponseCache, RefusesPlansThatDoNotFitIt) {
  ResponseCache cache;
  Plan nothing_there = using_position(0);
  EXPECT_FALSE(cache.apply(nothing_there, 0).has_value());
  Plan too_far = inserting(kMaxCachePositions, request_of("a", {1}));
  EXPECT_FALSE(cache.apply(too_far, 0).has_value());
  Request gather = request_of("a", {1});
  gather.op = OpKind::kAllgather;
  Plan no_dimensions = inserting(0, gather);
  EXPECT_FALSE(cache.apply(no_dimensions, 0).has_value());
  Plan free_already = erasing(77);
  EXPECT_TRUE(cache.apply(free_already, 0).has_value());
}

TEST(ResponseCache, SetsBitsAnywhere) {
  std::vector<std::uint64_t> bits;
  set_bit(bits, 0);
  set_bit(bits, 130);
  EXPECT_EQ(bits, (std::vector<std::uint64_t>{1, 0, 4}));
}

}  // namespace
}  // namespace fasthorovod::core
