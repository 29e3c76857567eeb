#include "ops/negotiator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "ops/chunk_board.h"
#include "ops/executor.h"
#include "ops/pending_table.h"
#include "ops/worker.h"
#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::chrono::seconds kLimit{10};

core::PlanItem item_for(const std::string& name, std::uint64_t sequence) {
  core::PlanItem item;
  item.type = core::DataType::kFloat32;
  item.sequence = sequence;
  item.tensors = {core::PlanTensor{.name = name, .shape = {4}}};
  return item;
}

/// Rank 1 of two, without lanes: what is started stays in flight.
class NegotiatorTest : public ::testing::Test {
 protected:
  ~NegotiatorTest() override {
    board_.fail_all({ErrorCode::kShutdown, "the test is over"});
    worker_.stop();
  }

  Handle submit(const std::string& name, std::vector<float>& values) {
    std::vector<Submission> one;
    one.push_back(allreduce_of(name, values));
    return pending_.add(std::move(one))->front();
  }

  const core::World world_ = core::make_world({}, 0, 1, {core::Placement{}, core::Placement{}});
  core::Log log_{core::LogLevel::kOff, [](core::LogLevel, std::string_view) {}};
  PendingTable pending_{[] {}};
  Worker worker_;
  ChunkBoard board_{[](int, const Error&) {}, [] {}};
  Routes routes_{world_, board_, nullptr};
  core::AllreducePlan allreduces_;
  Executor executor_{world_,  1,        allreduces_, board_,
                     routes_, pending_, worker_,     {[](int) {}, [](const Error&) {}, [] {}}};
  ProcessSets sets_{world_};
  Negotiator negotiator_{
      world_,
      {},
      pending_,
      sets_,
      executor_,
      log_,
      {[](int, const core::ControlMessage&) {}, [](core::Duration, const std::function<void()>&) {},
       [](const Error& error) { ADD_FAILURE() << error.message; }}};
};

// Ranks that are through with an operation submit the next one of the same name, which may fail,
// say because one of them leaves, while a slower rank is still in the first one.
TEST_F(NegotiatorTest, KeepsARunningOperationWhenTheNextOfItsNameFails) {
  std::vector<float> values(4);
  std::vector<float> others(4);
  const Handle running = submit("gradient", values);
  negotiator_.apply({1, {}, {item_for("gradient", 1)}});
  const Handle waiting = submit("other", others);
  core::Plan failing{2, {}, {item_for("gradient", 2), item_for("other", 3)}};
  for (core::PlanItem& item : failing.items) {
    item.error = Error{ErrorCode::kShutdown, "rank 0 shut down", 0};
  }
  negotiator_.apply(std::move(failing));

  ASSERT_TRUE(waiting.wait_for(kLimit));
  EXPECT_EQ(waiting.wait().error().code, ErrorCode::kShutdown);
  EXPECT_FALSE(running.done()) << "its memory is still lent";
}

}  // namespace
}  // namespace fasthorovod::ops::testing
