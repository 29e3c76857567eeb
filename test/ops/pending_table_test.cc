#include "ops/pending_table.h"

#include <gtest/gtest.h>

namespace fasthorovod::ops {
namespace {

Submission named(const std::string& name) {
  Submission submission;
  submission.request.name = name;
  return submission;
}

std::vector<Submission> several(std::initializer_list<const char*> names) {
  std::vector<Submission> submissions;
  for (const char* name : names) submissions.push_back(named(name));
  return submissions;
}

TEST(PendingTable, AcceptsAllOrNone) {
  PendingTable table([] {});
  ASSERT_TRUE(table.add(several({"a"})));
  const auto refused = table.add(several({"b", "a"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kDuplicateName);
  EXPECT_NE(refused.error().message.find("'a'"), std::string::npos);
  EXPECT_EQ(table.find(core::kWorldGroup, "b"), nullptr);
  EXPECT_FALSE(table.add(several({"c", "c"})));
}

TEST(PendingTable, FreesANameWhenItsOperationCompletes) {
  PendingTable table([] {});
  const auto handles = table.add(several({"a"}));
  ASSERT_TRUE(handles);
  table.complete(table.find(core::kWorldGroup, "a"), {});
  EXPECT_TRUE(handles->front().done());
  EXPECT_TRUE(table.add(several({"a"})));
}

TEST(PendingTable, KeepsGroupsApart) {
  PendingTable table([] {});
  ASSERT_TRUE(table.add(several({"a"})));
  Submission other = named("a");
  other.request.group = 1;
  std::vector<Submission> one;
  one.push_back(std::move(other));
  EXPECT_TRUE(table.add(std::move(one)));
}

TEST(PendingTable, CallsOnceForABurst) {
  int calls = 0;
  PendingTable table([&calls] { ++calls; });
  ASSERT_TRUE(table.add(several({"a"})));
  ASSERT_TRUE(table.add(several({"b", "c"})));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(table.take_fresh().size(), 3U);
  ASSERT_TRUE(table.add(several({"d"})));
  EXPECT_EQ(calls, 2);
}

TEST(PendingTable, RefusesWithTheFirstReasonAfterClosing) {
  PendingTable table([] {});
  table.close({core::ErrorCode::kPeerLost, "rank 2 is gone", 2});
  table.close({core::ErrorCode::kShutdown, "later"});
  const auto refused = table.add(several({"a"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().culprit, 2);
}

TEST(PendingTable, TakesNothingMoreWhileAJoinIsPending) {
  PendingTable table([] {});
  std::vector<Submission> join = several({"join"});
  join.front().request.op = core::OpKind::kJoin;
  ASSERT_TRUE(table.add(std::move(join)));
  const auto refused = table.add(several({"a"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kInvalidArgument);
  table.complete(table.find(core::kWorldGroup, "join"), {}, 0);
  EXPECT_TRUE(table.add(several({"a"})));
}

TEST(PendingTable, CompletesAnEntryOnce) {
  PendingTable table([] {});
  const auto handles = table.add(several({"a"}));
  ASSERT_TRUE(handles);
  const EntryPtr entry = table.find(core::kWorldGroup, "a");
  table.complete(entry, core::Error{core::ErrorCode::kPeerLost, "first"});
  table.complete(entry, {});
  EXPECT_FALSE(handles->front().wait());
}

}  // namespace
}  // namespace fasthorovod::ops
