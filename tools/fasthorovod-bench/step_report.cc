#include "tools/fasthorovod-bench/step_report.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace fasthorovod::tools {
namespace {

constexpr double kUsOfMs = 1000;
constexpr double kBytesOfMb = 1e6;

}  // namespace

StepReport::StepReport(const core::World& world, const StepOptions& options,
                       const std::vector<Gradient>& gradients)
    : world_(world), options_(options), gradients_(gradients) {}

void StepReport::heading() const {
  if (options_.json) return;
  std::uint64_t elements = 0;
  for (const Gradient& gradient : gradients_) elements += gradient.elements;
  fmt::print(
      "# steps of {} (sizes divided by {}): {} gradients, {:.1f} MB; ranks {}, hosts {}, "
      "repetitions {} of {} steps\n",
      options_.model.name, options_.scale, gradients_.size(),
      static_cast<double>(elements) * sizeof(float) / kBytesOfMb, world_.size,
      world_.host_names.size(), options_.repetitions, options_.steps);
  fmt::print("#{:>12} {:>12} {:>11} {:>11} {:>9} {:>9} {:>7}\n", "compute", "backend", "step",
             "exposed", "exposed", "it/ours", "#wrong");
  fmt::print("#{:>12} {:>12} {:>11} {:>11} {:>9}\n", "(ms)", "", "(ms)", "(ms)", "(%)");
  std::fflush(stdout);
}

void StepReport::row(const StepRow& row) const {
  const double compute = row.compute_us / kUsOfMs;
  const double step = row.summary.median_us / kUsOfMs;
  const double exposed = step - compute;
  if (options_.json) {
    nlohmann::ordered_json object{{"model", options_.model.name},
                                  {"scale", options_.scale},
                                  {"ranks", world_.size},
                                  {"hosts", world_.host_names.size()},
                                  {"backend", row.contestant},
                                  {"compute_ms", compute},
                                  {"step_ms", step},
                                  {"exposed_ms", exposed},
                                  {"wrong", row.summary.wrong}};
    if (row.speedup) object["time_by_ours"] = *row.speedup;
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print(" {:>12.2f} {:>12} {:>11.2f} {:>11.2f} {:>9.1f} {:>9} {:>7}\n", compute,
               row.contestant, step, exposed, 100 * exposed / step,
               row.speedup ? fmt::format("{:.3f}", *row.speedup) : "", row.summary.wrong);
  }
  std::fflush(stdout);
}

}  // namespace fasthorovod::tools
