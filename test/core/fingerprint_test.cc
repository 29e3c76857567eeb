#include "core/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace fasthorovod::core {
namespace {

PlanItem base_item() {
  PlanItem item;
  item.sequence = 1;
  item.tensors = {{"a", {3, 4}, {}}, {"b", {5}, {}}};
  return item;
}

TEST(Fingerprint, ChangesWithEverythingRanksMustAgreeOn) {
  const std::vector<std::function<void(PlanItem&)>> changes{
      [](PlanItem&) {},
      [](PlanItem& item) { item.group = 1; },
      [](PlanItem& item) { item.sequence = 2; },
      [](PlanItem& item) { item.op = OpKind::kBroadcast; },
      [](PlanItem& item) { item.type = DataType::kInt32; },
      [](PlanItem& item) { item.reduction = Reduction::kMax; },
      [](PlanItem& item) { item.root = 0; },
      [](PlanItem& item) { item.prescale = 0.5; },
      [](PlanItem& item) { item.postscale = 0.5; },
      [](PlanItem& item) { item.codec.id = CodecId::kTwobit; },
      [](PlanItem& item) {
        item.codec = {CodecId::kTwobit, 0.5F};
      },
      [](PlanItem& item) {
        item.tensors[0].shape = {4, 4};
      },
      [](PlanItem& item) { std::swap(item.tensors[0], item.tensors[1]); },
      [](PlanItem& item) { item.tensors.pop_back(); },
  };
  std::set<std::uint32_t> seen;
  for (const auto& change : changes) {
    PlanItem item = base_item();
    change(item);
    seen.insert(fingerprint(item));
  }
  EXPECT_EQ(seen.size(), changes.size());
}

TEST(Fingerprint, IgnoresNamesAndHowAShapeIsCut) {
  PlanItem item = base_item();
  item.tensors[0].name = "other";
  item.tensors[0].shape = {12};
  EXPECT_EQ(fingerprint(item), fingerprint(base_item()));
}

TEST(Fingerprint, OfAnAllgatherIsTheSameForRanksWithOtherRows) {
  PlanItem item;
  item.op = OpKind::kAllgather;
  item.tensors = {{"a", {2, 5}, {2, 3}}};
  PlanItem other = item;
  other.tensors[0].shape = {3, 5};
  EXPECT_EQ(fingerprint(item), fingerprint(other));
  other.tensors[0].first_dimensions = {3, 2};
  EXPECT_NE(fingerprint(item), fingerprint(other));
}

}  // namespace
}  // namespace fasthorovod::core
