#include "core/agreement.h"

#include <gtest/gtest.h>

#include <limits>

namespace fasthorovod::core {
namespace {

TEST(Agreement, DescribesRanksShortly) {
  EXPECT_EQ(describe_ranks({3}), "rank 3");
  EXPECT_EQ(describe_ranks({0, 2}), "rank 0, 2");
  EXPECT_EQ(describe_ranks({0, 1}), "rank 0, 1");
  EXPECT_EQ(describe_ranks({0, 1, 2, 3, 7, 8, 9}), "rank 0 to 3, 7 to 9");
}

TEST(Agreement, DescribesTypeAndShape) {
  Request request;
  EXPECT_EQ(describe_type_and_shape(request), "float32 []");
  request.shape = {3, 4};
  EXPECT_EQ(describe_type_and_shape(request), "float32 [3, 4]");
  request.op = OpKind::kAllgather;
  EXPECT_EQ(describe_type_and_shape(request), "float32 [*, 4]");
}

TEST(Agreement, TakesNotANumberForANumberLikeAnyOther) {
  Request request;
  request.prescale = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(agree(request, request));
}

TEST(Agreement, OfAllgathersNeedsTheSameNumberOfDimensions) {
  Request a;
  a.op = OpKind::kAllgather;
  Request b = a;
  a.shape = {3, 4};
  b.shape = {9, 4};
  EXPECT_TRUE(agree(a, b));
  b.shape = {9, 4, 1};
  EXPECT_FALSE(agree(a, b));
  b.shape = {};
  EXPECT_FALSE(agree(a, b));
}

}  // namespace
}  // namespace fasthorovod::core
