// How many flows to a peer a rank sends on: found by trying. What is tried, and for how long it is
// believed:
//
//   - One flow more (a quarter more from eight on) is kept when all together then carry clearly
//     more; else two more are tried, for the added one may share the way of another. So the number
//     grows while each flow is limited by itself, and stops at the link.
//   - One flow less is kept when the others carry as much, for each flow costs processor time. As a
//     trial that fails costs goodput, it comes only after a pause, and ends as soon as it is
//     clearly worse.
//   - What failed is not tried again until goodput has changed (a limit was set or lifted, others
//     came or left), or half a minute has passed.
//
// It hears of samples taken while all flows in use had bytes waiting; where the network is not the
// limit there are none, and the number stays. The first sample with more flows is left out, for one
// that rested begins slowly.
//
// Pure; the caller tells the time. Thread: owner.
#pragma once

#include <optional>
#include <vector>

#include "core/clock.h"

namespace fasthorovod::core {

class FlowCount final {
 public:
  /// What so many flows carried together, in bytes a second.
  struct Experience {
    int flows = 0;
    double goodput = 0;
  };

  /// `first`: how many to begin with, at least 1.
  explicit FlowCount(int first) : settled_(first), trial_(first) {}

  /// How many to send on, of those there are.
  [[nodiscard]] int in_use() const { return trial_; }
  /// The number is being tried, and another one was believed in before.
  [[nodiscard]] bool tries() const { return trial_ != settled_; }

  /// A sample of what in_use() flows, or all `most` there are, carry together.
  void learn(TimePoint now, double goodput, int most);

  /// What was tried since goodput changed last, in order of the number of flows.
  [[nodiscard]] const std::vector<Experience>& experience() const { return experience_; }

 private:
  enum class Phase { kMeasure, kTry, kRest };

  void measure(TimePoint now, int most);
  void judge(TimePoint now, double goodput, int most);
  [[nodiscard]] bool is_clearly_less(double last, double carried) const;
  void rest(TimePoint now, int most);
  void begin_era(TimePoint now);
  void choose(TimePoint now, int most);
  void use(int flows, Phase phase);
  void remember(int flows, double goodput);
  [[nodiscard]] bool knows(int flows) const;
  [[nodiscard]] double best() const;
  [[nodiscard]] std::optional<int> more(int most) const;
  [[nodiscard]] std::optional<int> fewer() const;

  int settled_;
  int trial_;
  Phase phase_ = Phase::kMeasure;
  bool skips_ = true;            // the next sample: the first of its kind
  std::vector<double> samples_;  // of this phase
  double base_ = 0;              // what the settled number carries
  std::vector<Experience> experience_;
  TimePoint fewer_from_{};  // when fewer may be tried
  TimePoint era_ends_{};
};

}  // namespace fasthorovod::core
