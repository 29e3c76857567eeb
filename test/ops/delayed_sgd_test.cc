#include "ops/compensation/delayed_sgd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <latch>

#include "test/ops/rank_group.h"

namespace fasthorovod::ops::testing {
namespace {

using core::ErrorCode;
using Floats = std::vector<float>;

constexpr std::size_t kElements = 1000;
constexpr std::size_t kFirst = 300;  // of the first of two parameters
constexpr std::uint64_t kWarmUp = 2;

// The rates change from step to step, and the parameters have settings of their own.
SgdSettings settings_of(std::size_t element, std::uint64_t step) {
  const float rate = step % 2 == 0 ? 0.25F : 0.125F;
  return element < kFirst ? SgdSettings{rate, 0.9F, 0.01F} : SgdSettings{2 * rate, 0.5F, 0.0F};
}

// Of the local step of that step; 0 now and then.
float local_rate_of(std::size_t element, std::uint64_t step) {
  return step % 3 == 0 ? 0.0F : settings_of(element, step).rate / 2;
}

// A gradient that depends on the weights and differs between ranks. Its values are whole numbers of
// sixteenths, so that no order of a sum changes a bit.
float gradient_of(float weight, int rank, std::uint64_t step, std::size_t element) {
  const float wave = std::sin(static_cast<float>(element + 3 * step)) + weight;
  return std::round(8 * std::fmod(wave, 4.0F)) / 16 + static_cast<float>(rank) / 16;
}

Floats first_weights() {
  Floats weights(kElements);
  for (std::size_t i = 0; i < kElements; ++i) weights[i] = static_cast<float>(i % 7) / 8;
  return weights;
}

float average_of(float sum, int size) {
  return static_cast<float>(static_cast<double>(sum) * (1.0 / size));
}

// All ranks of a training, computed in one place, one element at a time.
struct Simulation {
  explicit Simulation(int size) : local(static_cast<std::size_t>(size), first_weights()) {}

  void step() {
    for (std::size_t i = 0; i < kElements; ++i) step_element(i);
    ++steps;
  }

  void step_element(std::size_t i) {
    const SgdSettings settings = settings_of(i, steps);
    SgdSettings ahead = settings;
    ahead.rate = local_rate_of(i, steps);
    float sum = 0;
    for (std::size_t rank = 0; rank < local.size(); ++rank) {
      const float own = gradient_of(local[rank][i], static_cast<int>(rank), steps, i);
      sum += own;
      sgd_preview({&local[rank][i], 1}, {&weights[i], 1}, {&velocity[i], 1}, {&own, 1}, ahead);
    }
    const float average = average_of(sum, static_cast<int>(local.size()));
    sgd_step({&weights[i], 1}, {&velocity[i], 1}, {&average, 1}, settings);
    if (steps >= kWarmUp) return;
    for (Floats& replica : local) replica[i] = weights[i];
  }

  std::vector<Floats> local;  // w of each rank
  Floats weights = first_weights();
  Floats velocity = Floats(kElements);
  std::uint64_t steps = 0;
};

struct Buffers {
  Floats weights = Floats(kElements);
  Floats velocity = Floats(kElements);
  Floats gradient = Floats(kElements + DelayedSgd::kMarkElements);
};

// One rank of a training, as a caller of DelayedSgd writes it.
struct Trainer {
  explicit Trainer(Engine& its_engine, std::uint64_t warm_up = kWarmUp)
      : engine(its_engine),
        rule({buffers->weights, buffers->velocity, buffers->gradient, buffers}, "delayed",
             core::kWorldGroup, warm_up) {}

  void step() {
    ASSERT_TRUE(rule.finish());
    const auto kind = rule.state().next();
    ASSERT_TRUE(kind);
    const std::uint64_t now = rule.state().progress().steps;
    for (std::size_t i = 0; i < kElements; ++i) {
      buffers->gradient[i] = gradient_of(model[i], engine.world().rank, now, i);
    }
    if (rule.state().awaits_take_over()) take_over();
    const auto started = rule.start(engine, parameters(now));
    ASSERT_TRUE(started) << started.error().message;
    if (*kind == OdSgd::Step::kDelayed) return;
    ASSERT_TRUE(rule.finish());
    for (std::size_t i = 0; i < kElements; ++i) {
      sgd_step({&model[i], 1}, {&velocity[i], 1}, {&buffers->gradient[i], 1}, settings_of(i, now));
    }
  }

  void take_over() {
    buffers->weights = model;
    buffers->velocity = velocity;
    ASSERT_TRUE(rule.state().take_over());
  }

  std::vector<DelayedSgd::Parameter> parameters(std::uint64_t now) {
    const std::span all(model);
    return {{all.first(kFirst), local_rate_of(0, now), settings_of(0, now)},
            {all.subspan(kFirst), local_rate_of(kFirst, now), settings_of(kFirst, now)}};
  }

  Engine& engine;
  std::shared_ptr<Buffers> buffers = std::make_shared<Buffers>();  // owners: this and the rule
  DelayedSgd rule;
  Floats model = first_weights();
  Floats velocity = Floats(kElements);
};

class DelayedSgdAt : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DelayedSgdAt, ::testing::Values(1, 2, 3));

TEST_P(DelayedSgdAt, FollowsTheFormulasToTheBit) {
  run_as_threads(GetParam(), [](Engine& engine) {
    Simulation expected(engine.world().size);
    Trainer trainer(engine);
    const auto rank = static_cast<std::size_t>(engine.world().rank);
    for (std::uint64_t step = 0; step < 12; ++step) {
      expected.step();
      ASSERT_NO_FATAL_FAILURE(trainer.step());
      ASSERT_EQ(trainer.model, expected.local[rank]) << "after step " << step;
      if (step < kWarmUp) continue;
      ASSERT_TRUE(trainer.rule.finish());
      ASSERT_EQ(trainer.buffers->weights, expected.weights) << "after step " << step;
      ASSERT_EQ(trainer.buffers->velocity, expected.velocity) << "after step " << step;
    }
    EXPECT_EQ(trainer.rule.state().updates(), 12U);
  });
}

TEST(DelayedSgd, TheModelGoesOnBeforeTheOtherRankHasComeToItsStep) {
  std::latch checked(1);
  run_as_threads(2, [&checked](Engine& engine) {
    Trainer trainer(engine, 0);
    if (engine.world().rank == 1) checked.wait();
    const Floats before = trainer.model;
    trainer.step();
    if (engine.world().rank == 0) {
      // Nothing is left to wait for, though the exchange can not have taken place.
      EXPECT_TRUE(trainer.rule.state().in_flight());
      EXPECT_FALSE(trainer.rule.wait_for(std::chrono::milliseconds(20)));
      EXPECT_EQ(trainer.model, before);  // the local rate of the first step is 0
      EXPECT_FALSE(trainer.rule.state().next());
      checked.count_down();
    }
    EXPECT_TRUE(trainer.rule.finish());
    EXPECT_EQ(trainer.rule.state().updates(), 1U);
  });
}

TEST(DelayedSgd, AFaultOfTheExchangeIsToldAtItsEndAndEverAfter) {
  run_as_threads(2,
                 [](Engine& engine) {
                   Trainer trainer(engine, 0);
                   trainer.step();
                   ASSERT_TRUE(trainer.rule.finish());
                   if (engine.world().rank == 1) return;  // and so leaves
                   const Floats weights = trainer.buffers->weights;
                   const core::Status started = trainer.rule.start(engine, trainer.parameters(1));
                   const core::Status ended = trainer.rule.finish();
                   ASSERT_FALSE(ended);
                   EXPECT_TRUE(started || started.error().code == ended.error().code);
                   EXPECT_EQ(trainer.buffers->weights, weights);
                   for (const core::Status& status :
                        {trainer.rule.finish(), trainer.rule.start(engine, trainer.parameters(2)),
                         trainer.rule.state().show()}) {
                     ASSERT_FALSE(status);
                     EXPECT_EQ(status.error().message, ended.error().message);
                   }
                 },
                 {.quiet = true});
}

// A learning rate that differs in one bit, or a rank that is one step ahead, would let the global
// weights of the ranks part.
void expect_mismatch_everywhere(std::uint64_t warm_up,
                                const std::function<void(Trainer&)>& depart) {
  run_as_threads(3, [&](Engine& engine) {
    Trainer trainer(engine, warm_up);
    trainer.step();
    ASSERT_TRUE(trainer.rule.finish());
    const Buffers before = *trainer.buffers;
    if (engine.world().rank == 1) depart(trainer);
    const std::uint64_t now = trainer.rule.state().progress().steps;
    auto parameters = trainer.parameters(1);
    if (engine.world().rank == 1 && now == 1) {
      float& rate = parameters.back().settings.rate;
      rate = std::nextafter(rate, 1.0F);
    }
    ASSERT_TRUE(trainer.rule.start(engine, parameters));
    const core::Status ended = trainer.rule.finish();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, ErrorCode::kMismatch);
    EXPECT_NE(ended.error().message.find(fmt::format("step {}", now + 1)), std::string::npos);
    EXPECT_EQ(trainer.buffers->weights, before.weights);
    EXPECT_EQ(trainer.buffers->velocity, before.velocity);
    EXPECT_FALSE(trainer.rule.state().next());
  });
}

TEST(DelayedSgd, RatesThatDifferAreAnErrorOnAllRanks) {
  for (const std::uint64_t warm_up : {0U, 5U}) {
    expect_mismatch_everywhere(warm_up, [](Trainer&) {});
  }
}

TEST(DelayedSgd, ARankThatIsAStepAheadIsAnErrorOnAllRanks) {
  expect_mismatch_everywhere(0, [](Trainer& trainer) {
    ASSERT_TRUE(trainer.rule.state().restore({7, true}));
  });
}

TEST(DelayedSgd, BuffersOutliveTheirOwnerWhileTheyAreUsed) {
  std::latch dropped(1);
  run_as_threads(2, [&dropped](Engine& engine) {
    std::weak_ptr<Buffers> buffers;
    {
      Trainer trainer(engine, 0);
      if (engine.world().rank == 1) dropped.wait();
      trainer.step();
      buffers = trainer.buffers;
      if (engine.world().rank == 1) {
        EXPECT_TRUE(trainer.rule.finish());
      }
    }
    if (engine.world().rank == 0) {
      EXPECT_FALSE(buffers.expired());
      dropped.count_down();
    }
    Submission barrier;
    barrier.request.name = "after all";
    barrier.request.op = core::OpKind::kBarrier;
    const core::Result<Handle> end = engine.submit(std::move(barrier));
    ASSERT_TRUE(end);
    EXPECT_TRUE(end->wait());
    EXPECT_TRUE(buffers.expired());
  });
}

TEST(DelayedSgd, RefusesParametersThatAreNotThoseOfItsBuffers) {
  run_as_threads(1, [](Engine& engine) {
    Trainer trainer(engine, 0);
    ASSERT_TRUE(trainer.rule.state().take_over());
    auto parameters = trainer.parameters(0);
    parameters.pop_back();
    const core::Status refused = trainer.rule.start(engine, parameters);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(trainer.rule.state().in_flight());
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
