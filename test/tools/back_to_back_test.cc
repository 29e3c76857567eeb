#include "tools/fasthorovod-bench/back_to_back.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace fasthorovod::tools {
namespace {

constexpr auto kType = core::DataType::kFloat32;
constexpr auto kSum = core::Reduction::kSum;

/// A world of one rank, which counts its calls and can go wrong.
class FakeRank final : public BackToBackRank {
 public:
  explicit FakeRank(std::vector<std::byte>& values) : values_(values) {}

  core::Status allreduce() override {
    ++calls;
    if (calls == fail_at) return core::Error{core::ErrorCode::kUnavailable, "gone"};
    if (calls == wrong_at) values_[0] = std::byte{0x7F};
    return {};
  }

  core::Result<std::vector<double>> exchange(const std::vector<double>& own) override {
    return own;
  }

  int calls = 0;
  int fail_at = 0;
  int wrong_at = 0;

 private:
  std::vector<std::byte>& values_;
};

class BackToBack : public testing::Test {
 protected:
  core::Result<Timing> run(const Pace& pace) {
    return time_back_to_back(rank_, {values_, own_, own_}, pace,
                             [this](double microseconds) { traced_.push_back(microseconds); });
  }

  std::vector<std::byte> values_ = std::vector<std::byte>(4096);
  Pattern own_ = contribution(kType, kSum, 0);
  FakeRank rank_{values_};
  std::vector<double> traced_;
};

TEST_F(BackToBack, TimesAsManyIterationsAsAreAskedFor) {
  const auto timing = run({.iterations = 7, .warm_up = 3});
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->iterations_us.size(), 7U);
  EXPECT_EQ(timing->iterations_us, traced_);
  EXPECT_EQ(rank_.calls, 1 + 3 + 7 + 1);
  EXPECT_EQ(timing->wrong, 0U);
  EXPECT_GE(timing->cpu_us, 0);
}

TEST_F(BackToBack, WarmsUpNoMoreWhereTheCheckTookTheWholeBudget) {
  const auto timing = run({.budget_s = 1e-9, .warm_up = 3});
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->iterations_us.size(), 2U);
  EXPECT_EQ(rank_.calls, 1 + 2 + 1);
}

TEST_F(BackToBack, CountsWhatIsWrongBeforeAndAfter) {
  for (const int call : {1, 1 + 1 + 5 + 1}) {
    rank_.calls = 0;
    rank_.wrong_at = call;
    const auto timing = run({.iterations = 5, .warm_up = 1});
    ASSERT_TRUE(timing);
    EXPECT_EQ(timing->wrong, 1U) << "call " << call;
  }
}

TEST_F(BackToBack, EndsWithTheFirstError) {
  for (const int call : {1, 2, 4, 8}) {
    rank_.calls = 0;
    rank_.fail_at = call;
    const auto timing = run({.iterations = 5, .warm_up = 1});
    ASSERT_FALSE(timing) << "call " << call;
    EXPECT_EQ(timing.error().message, "gone");
    EXPECT_EQ(rank_.calls, call);
  }
}

TEST(BackToBackPace, FitsIterationsIntoTheBudget) {
  const Pace pace{.iterations = 20, .budget_s = 0.5, .warm_up = 1};
  EXPECT_EQ(iterations_of(pace, 0.1), 5);
  EXPECT_EQ(iterations_of(pace, 10), 2);
  EXPECT_EQ(iterations_of(pace, 1e-7), 2000);
  EXPECT_EQ(iterations_of(pace, 0), 2000);
  EXPECT_EQ(iterations_of({.iterations = 20}, 0.1), 20);
}

}  // namespace
}  // namespace fasthorovod::tools
