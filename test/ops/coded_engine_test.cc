// All-reduces with a codec through the engine, for every codec of the table.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "compression/codec_table.h"
#include "ops/algorithm_table.h"
#include "ops/algorithms/coded_exchange.h"
#include "test/ops/rank_group.h"
#include "transport/frame.h"

namespace fasthorovod::ops::testing {
namespace {

using core::CodecChoice;
using core::CodecId;
using core::ErrorCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Values = std::vector<float>;

constexpr float kThreshold = 0.5F;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

CodecChoice choice_of(const compression::CodecInfo& codec) {
  return {codec.id, codec.needs_threshold ? kThreshold : 0.0F};
}

Submission coded(const std::string& name, Values& values, CodecChoice codec,
                 core::Reduction reduction = core::Reduction::kSum) {
  Submission submission = allreduce_of(name, values, reduction);
  submission.request.codec = codec;
  return submission;
}

// A value that every codec brings as it is: -0.5, 0 or 0.5.
float exact_value(std::size_t index, int rank) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 5) % 3) * 0.5F - 0.5F;
}

Values exact_values(std::size_t count, int rank) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = exact_value(i, rank);
  return values;
}

Values exact_sums(std::size_t count, int ranks) {
  Values sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += exact_value(i, rank);
  }
  return sums;
}

class EachCodec : public ::testing::TestWithParam<std::tuple<std::size_t, int>> {
 protected:
  [[nodiscard]] static const compression::CodecInfo& codec() {
    return compression::codec_table()[std::get<0>(GetParam())];
  }
  [[nodiscard]] static CodecChoice choice() { return choice_of(codec()); }
  [[nodiscard]] static int size() { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Codecs, EachCodec,
                         ::testing::Combine(::testing::Range(std::size_t{0},
                                                             compression::codec_table().size()),
                                            ::testing::Values(1, 2, 3, 5)),
                         [](const auto& tested) {
                           return fmt::format(
                               "{}_{}", compression::codec_table()[std::get<0>(tested.param)].name,
                               std::get<1>(tested.param));
                         });

TEST_P(EachCodec, AddsWhatItCanBringAsItIs) {
  run_as_threads(size(), [](Engine& engine) {
    for (const std::size_t count : {0U, 1U, 15U, 64U, 65U, 5000U, 3'000'001U}) {
      Values values = exact_values(count, engine.world().rank);
      expect_success(engine.submit(coded(fmt::format("w{}", count), values, choice())));
      EXPECT_EQ(values, exact_sums(count, size())) << count;
    }
  });
}

TEST_P(EachCodec, AveragesAndScales) {
  run_as_threads(size(), [](Engine& engine) {
    Values values(1000, 0.25F);
    Submission submission = coded("average", values, choice(), core::Reduction::kAverage);
    submission.request.prescale = 2.0;
    submission.request.postscale = 3.0;
    expect_success(engine.submit(std::move(submission)));
    EXPECT_EQ(values, Values(1000, 1.5F));
  });
}

TEST_P(EachCodec, LeavesTheInputAloneWhenTheOutputIsApart) {
  run_as_threads(size(), [](Engine& engine) {
    const Values input = exact_values(100, engine.world().rank);
    Values output(100, kNan);
    Submission submission = coded("apart", output, choice());
    submission.input = input.data();
    expect_success(engine.submit(std::move(submission)));
    EXPECT_EQ(input, exact_values(100, engine.world().rank));
    EXPECT_EQ(output, exact_sums(100, size()));
  });
}

TEST_P(EachCodec, FusesTensorsOfOneCodec) {
  run_as_threads(size(), [](Engine& engine) {
    std::vector<Values> tensors;
    std::vector<Submission> members;
    for (std::size_t i = 0; i < 40; ++i) tensors.push_back(exact_values(i, engine.world().rank));
    for (Values& values : tensors) {
      members.push_back(coded(fmt::format("t{}", members.size()), values, choice()));
    }
    const auto handles = engine.submit_bundle("all", std::move(members));
    ASSERT_TRUE(handles);
    for (const Handle& handle : *handles) expect_success(handle);
    for (const Values& values : tensors) EXPECT_EQ(values, exact_sums(values.size(), size()));
    EXPECT_EQ(engine.statistics().operations, 1U);
  });
}

TEST_P(EachCodec, GivesAllRanksTheSameBits) {
  std::vector<Values> results(static_cast<std::size_t>(size()));
  run_as_threads(size(), [&results](Engine& engine) {
    Values& values = results[static_cast<std::size_t>(engine.world().rank)];
    values.resize(10'000);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i + 1) * static_cast<float>(engine.world().rank + 1));
    }
    expect_success(engine.submit(coded("sines", values, choice())));
  });
  for (const Values& values : results) EXPECT_EQ(values, results.front());
}

// All ranks see it, and the next step is as if it had not been.
TEST_P(EachCodec, TellsAllRanksOfWhatIsNotFinite) {
  run_as_threads(size(), [](Engine& engine) {
    for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
      Values values(200, 0.5F);
      if (engine.world().rank == size() - 1) values[70] = bad;
      expect_success(engine.submit(coded("w", values, choice())));
      EXPECT_FALSE(std::isfinite(values[70]));
      values[70] = values[0];
      EXPECT_EQ(values, Values(200, 0.5F * static_cast<float>(size())));
      values.assign(200, 0.5F);
      expect_success(engine.submit(coded("w", values, choice())));
      EXPECT_EQ(values, Values(200, 0.5F * static_cast<float>(size())));
    }
  });
}

TEST_P(EachCodec, CountsARankThatHasJoinedAsZeros) {
  if (size() < 2) GTEST_SKIP() << "somebody must be left";
  run_as_threads(size(), [](Engine& engine) {
    if (engine.world().rank != 0) {
      Values values(100, 0.5F);
      expect_success(engine.submit(coded("w", values, choice())));
      EXPECT_EQ(values, Values(100, 0.5F * static_cast<float>(size() - 1)));
    }
    Submission join;
    join.request.op = core::OpKind::kJoin;
    join.request.name = "join";
    expect_success(engine.submit(std::move(join)));
  });
}

TEST_P(EachCodec, SendsTheBytesOfItsFormula) {
  if (!choice().encodes()) GTEST_SKIP() << "its bytes are those of the algorithm";
  const auto sent_by_schedule = [](const Engine& engine, std::size_t elements) {
    const CodedLayout layout(*codec().codec, elements, engine.world().rank, size());
    const std::uint64_t chunk = default_chunk_bytes(layout.buffer_bytes(), size(), 4);
    const Schedule schedule = coded_exchange(layout, chunk);
    return schedule.bytes_sent() + schedule.sends.size() * transport::kFrameHeaderBytes;
  };
  GroupOptions apart;
  apart.adjust = [](core::Config& config) {
    live_apart(config);
    config.flows = 4;
  };
  run_as_threads(
      size(),
      [&](Engine& engine) {
        Values values(300'000, 0.5F);
        expect_success(engine.submit(coded("w", values, choice())));
        EXPECT_EQ(engine.statistics().bytes_sent, sent_by_schedule(engine, values.size()));
      },
      apart);
}

TEST_P(EachCodec, IsRefusedWhereItCanNotWork) {
  if (!choice().encodes()) GTEST_SKIP() << "it works everywhere";
  run_as_threads(1, [](Engine& engine) {
    const auto refusal = [&engine](const std::function<void(core::Request&)>& change) {
      Values values(4);
      Submission submission = coded("w", values, choice());
      change(submission.request);
      const core::Status status = outcome(engine.submit(std::move(submission)));
      EXPECT_FALSE(status);
      EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
      return status.error().message;
    };
    EXPECT_THAT(refusal([](core::Request& r) { r.type = core::DataType::kInt32; }),
                HasSubstr(fmt::format("the codec {} encodes float32, not int32", codec().name)));
    EXPECT_THAT(refusal([](core::Request& r) { r.reduction = core::Reduction::kMax; }),
                HasSubstr("is for sum and average, not max"));
    EXPECT_THAT(refusal([](core::Request& r) {
                  r.op = core::OpKind::kBroadcast;
                  r.root = 0;
                }),
                HasSubstr("is for all-reduces only"));
    if (!codec().needs_threshold) return;
    for (const float bad : {0.0F, -1.0F, kNan, std::numeric_limits<float>::infinity()}) {
      EXPECT_THAT(refusal([bad](core::Request& r) { r.codec.threshold = bad; }),
                  HasSubstr("threshold"));
    }
  });
}

constexpr CodecChoice kTwobit{CodecId::kTwobit, kThreshold};

// Nothing is lost: what the results brought and what the residuals still hold is what was given.
TEST(Twobit, BringsEverythingInTheEnd) {
  run_as_threads(3, [](Engine& engine) {
    constexpr std::size_t kCount = 500;
    Values brought(kCount);
    for (int step = 0; step < 10; ++step) {
      Values values(kCount);
      for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 9) / 16.0F;
      expect_success(engine.submit(coded("w", values, kTwobit)));
      for (std::size_t i = 0; i < kCount; ++i) brought[i] += values[i];
    }
    // All ranks gave the same, so a third of the sum is what one gave: at most a threshold behind.
    for (std::size_t i = 0; i < kCount; ++i) {
      const float given = 10.0F * static_cast<float>(i % 9) / 16.0F;
      EXPECT_LT(std::abs(brought[i] / 3.0F - given), kThreshold) << i;
    }
  });
}

TEST(Twobit, StartsAnewWhenATensorChangesItsSize) {
  run_as_threads(2, [](Engine& engine) {
    for (const std::size_t count : {100U, 200U}) {
      Values values(count, 0.25F);
      expect_success(engine.submit(coded("w", values, kTwobit)));
      EXPECT_EQ(values, Values(count, 0.0F));
    }
    Values values(200, 0.25F);
    expect_success(engine.submit(coded("w", values, kTwobit)));
    EXPECT_EQ(values, Values(200, 1.0F)) << "a quarter was kept on both";
  });
}

TEST(Twobit, LetsResidualsBeReadAndPut) {
  run_as_threads(2, [](Engine& engine) {
    Values values(3, 0.25F);
    EXPECT_TRUE(engine.residual(core::kWorldGroup, "w").empty());
    expect_success(engine.submit(coded("w", values, kTwobit)));
    EXPECT_EQ(engine.residual(core::kWorldGroup, "w"), Values(3, 0.25F));
    engine.set_residual(core::kWorldGroup, "w", {0.0F, 0.25F, -0.75F});
    values.assign(3, 0.25F);
    expect_success(engine.submit(coded("w", values, kTwobit)));
    EXPECT_EQ(values, (Values{0.0F, 1.0F, -1.0F}));
    EXPECT_EQ(engine.residual(core::kWorldGroup, "w"), (Values{0.25F, 0.0F, 0.0F}));
  });
}

TEST(Codecs, ThatDifferAreToldToAllRanks) {
  run_as_threads(3, [](Engine& engine) {
    Values values(10, 0.5F);
    const float threshold = engine.world().rank == 1 ? 0.25F : 0.5F;
    const core::Status status =
        outcome(engine.submit(coded("w", values, {CodecId::kTwobit, threshold})));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(status.error().message, AllOf(HasSubstr("rank 0, 2: twobit(threshold=0.5)"),
                                              HasSubstr("rank 1: twobit(threshold=0.25)")));
    expect_success(engine.submit(coded("w", values, {CodecId::kFp16, 0.0F})));
  });
}

TEST(Codecs, LiveSideBySide) {
  run_as_threads(4, [](Engine& engine) {
    const std::span<const compression::CodecInfo> table = compression::codec_table();
    std::vector<Values> tensors(60, exact_values(20'000, engine.world().rank));
    std::vector<core::Result<Handle>> handles;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      handles.push_back(engine.submit(
          coded(fmt::format("t{}", i), tensors[i], choice_of(table[i % table.size()]))));
    }
    for (const auto& handle : handles) expect_success(handle);
    for (const Values& values : tensors) EXPECT_EQ(values, exact_sums(20'000, 4));
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
