#include "tools/fasthorovod-bench/engine_steps.h"

#include <chrono>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "tools/fasthorovod-bench/lineup.h"
#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr core::DataType kType = core::DataType::kFloat32;
constexpr core::Reduction kReduction = core::Reduction::kSum;

void sleep_until(core::TimePoint start, double us) {
  std::this_thread::sleep_until(
      start + std::chrono::duration_cast<core::Clock::duration>(Microseconds(us)));
}

}  // namespace

EngineSteps::EngineSteps(std::string name, core::Config config,
                         const std::vector<Gradient>& gradients, Epochs& epochs, core::Log& log)
    : name_(std::move(name)),
      config_(std::move(config)),
      gradients_(gradients),
      epochs_(epochs),
      log_(log) {
  std::size_t bytes = 0;
  for (const Gradient& gradient : gradients) bytes += gradient.elements * core::size_of(kType);
  values_.resize(bytes);
  std::span<std::byte> rest = values_;
  for (const Gradient& gradient : gradients) {
    const std::size_t size = gradient.elements * core::size_of(kType);
    tensors_.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
}

core::Result<ops::Handle> EngineSteps::submit(ops::Engine& engine, std::size_t gradient) {
  ops::Submission submission;
  submission.request.name = gradients_[gradient].name;
  submission.request.type = kType;
  submission.request.reduction = kReduction;
  submission.request.shape = {static_cast<std::int64_t>(gradients_[gradient].elements)};
  submission.input = tensors_[gradient].data();
  submission.output = tensors_[gradient].data();
  return engine.submit(std::move(submission));
}

/// Its time in microseconds.
core::Result<double> EngineSteps::step(ops::Engine& engine, const StepTurn& turn) {
  const core::TimePoint start = core::Clock::now();
  std::vector<ops::Handle> handles;
  handles.reserve(gradients_.size());
  for (std::size_t at = 0; at < gradients_.size(); ++at) {
    sleep_until(start, turn.compute_us * (kForward + (1 - kForward) * gradients_[at].ready));
    core::Result<ops::Handle> handle = submit(engine, at);
    if (!handle) return std::move(handle).error();
    handles.push_back(*std::move(handle));
  }
  for (const ops::Handle& handle : handles) {
    if (core::Status status = handle.wait(); !status) return std::move(status).error();
  }
  return Microseconds(core::Clock::now() - start).count();
}

core::Result<std::vector<Sample>> EngineSteps::take(const StepTurn& turn) {
  auto engine = ops::Engine::start(config_, epochs_.next(), log_);
  if (!engine) return std::move(engine).error().with_context(name_);
  const core::World& world = (*engine)->world();
  const Pattern own = contribution(kType, kReduction, world.rank);
  const Pattern right = expected_result(kType, kReduction, world.size);
  Lineup lineup(**engine);
  for (int i = -turn.warm_up; i < turn.steps; ++i) {
    for (const std::span<std::byte> tensor : tensors_) fill(tensor, own);
    if (core::Status met = lineup.meet(); !met) return std::move(met).error();
    core::Result<double> took = step(**engine, turn);
    if (!took) return std::move(took).error().with_context(name_);
    std::uint64_t wrong = 0;
    for (const std::span<std::byte> tensor : tensors_) wrong += count_wrong(tensor, right);
    lineup.add(*took, wrong, i >= 0);
  }
  // That of the last step.
  if (core::Status met = lineup.meet(); !met) return std::move(met).error();
  return lineup.samples();
}

}  // namespace fasthorovod::tools
