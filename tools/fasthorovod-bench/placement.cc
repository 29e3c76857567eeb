#include "tools/fasthorovod-bench/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/placement_model.h"
#include "tools/fasthorovod-bench/auxiliary_gain.h"
#include "tools/fasthorovod-bench/calibration.h"
#include "tools/fasthorovod-bench/gains.h"
#include "tools/fasthorovod-bench/lane_pump.h"
#include "tools/fasthorovod-bench/neighbour.h"
#include "tools/fasthorovod-bench/others.h"
#include "transport/cores.h"
#include "transport/cost_cache.h"
#include "transport/own_processors.h"
#include "transport/topology.h"

namespace fasthorovod::tools {
namespace {

using core::LaneSetting;

constexpr double kMostOfOthers = 0.05;
constexpr int kTriesOfARound = 3;
constexpr int kCoresForGains = 8;
constexpr int kCoresForFour = 16;
constexpr int kGainTime = 500;  // ms
constexpr double kGiga = 1e9;

constexpr std::array kSettings{LaneSetting::kAlone, LaneSetting::kBusyCore,
                               LaneSetting::kHungryCache};

std::string_view words_of(LaneSetting setting) {
  if (setting == LaneSetting::kAlone) return "alone on a core";
  return setting == LaneSetting::kBusyCore ? "sharing a core" : "sharing a cache";
}

// Unlike those of the calibration: other sizes, several flows, sums among what is put down.
core::LaneLoad load_of_round(int round) {
  constexpr std::array<core::LaneLoad, 10> kLoads{{{std::size_t{256} << 10, 4, 0.5},
                                                   {std::size_t{64} << 10, 4, 0.5},
                                                   {std::size_t{256} << 10, 1, 0},
                                                   {std::size_t{512} << 10, 4, 0.5},
                                                   {std::size_t{96} << 10, 2, 1},
                                                   {std::size_t{256} << 10, 8, 0.5},
                                                   {std::size_t{64} << 10, 1, 0.5},
                                                   {std::size_t{192} << 10, 2, 0},
                                                   {std::size_t{256} << 10, 4, 1},
                                                   {std::size_t{384} << 10, 1, 0.5}}};
  return kLoads[static_cast<std::size_t>(round) % kLoads.size()];
}

// The last processor is measured; programs and interrupts begin at the first.
core::Result<CalibrationPlace> choose_place(core::Log& log) {
  auto machine = transport::look_at_machine("", log);
  if (!machine) return std::move(machine).error();
  const std::vector<int> usable = transport::own_processors().usable;
  std::erase_if(*machine, [&usable](const core::Processor& processor) {
    return !std::ranges::binary_search(usable, processor.id);
  });
  if (machine->empty()) {
    return core::Error{core::ErrorCode::kUnavailable, "no processor that this process may use"};
  }
  const core::Processor own = machine->back();
  CalibrationPlace place{.own = own.id};
  const std::vector<int> sharers = transport::cache_sharers(own.id);
  for (const core::Processor& processor : *machine) {
    if (processor.core == own.core) continue;
    if (!place.other) place.other = processor.id;
    const bool shares = std::ranges::find(sharers, processor.id) != sharers.end();
    if (shares && !place.sharing) place.sharing = processor.id;
  }
  return place;
}

struct Figure {
  LaneSetting setting{};
  core::LaneLoad load;
  double predicted = 0;
  double measured = 0;
  [[nodiscard]] double error() const { return std::abs(predicted / measured - 1); }
};

class Placement {
 public:
  Placement(const PlacementOptions& options, core::Log& log) : options_(options), log_(log) {}

  core::Result<bool> run() {
    auto place = choose_place(log_);
    if (!place) return std::move(place).error();
    place_ = *place;
    if (core::Status known = learn_costs(); !known) return std::move(known).error();
    if (options_.json) {
      print_json({{"costs", core::to_text(costs_)}, {"from", origin_}, {"void", void_}});
    } else {
      print_costs();
    }
    if (!options_.model) {
      if (core::Status compared = compare(); !compared) return std::move(compared).error();
    }
    print_model();
    if (!options_.model) {
      if (core::Status gained = measure_gain(); !gained) return std::move(gained).error();
    }
    return !void_;
  }

 private:
  core::Status learn_costs() {
    if (const auto kept = transport::load_costs(); kept && !options_.fresh) {
      costs_ = *kept;
      origin_ = "measured before";
      return {};
    }
    const Others others;
    auto costs = calibrate(place_);
    if (!costs) return std::move(costs).error();
    costs_ = *costs;
    origin_ = "measured now";
    // Others that come and go are not what the next run will find.
    if (is_void(others.share(), "the calibration")) return {};
    const auto file = transport::store_costs(costs_);
    origin_ += file ? fmt::format(", kept in {}", file->string())
                    : fmt::format("; not kept: {}", file.error().message);
    return {};
  }

  bool is_void(std::optional<double> share, std::string_view what) {
    const double used = share.value_or(1);
    if (used <= kMostOfOthers) return false;
    log_.warning(
        fmt::format("{} is void: others used {:.0f} % of the processors", what, 100 * used));
    void_ = true;
    return true;
  }

  core::Status compare() {
    if (!options_.json) {
      fmt::print("\n{:>8} {:>5} {:>5}  {:<16} {:>9} {:>9} {:>7}\n", "chunk", "flows", "added",
                 "a lane", "predicted", "measured", "error");
    }
    std::vector<double> errors;
    double most_of_others = 0;
    int void_rounds = 0;
    for (int round = 0, tries = 0; round < options_.rounds; ++tries) {
      const Others others;
      auto figures = measure_round(round);
      if (!figures) return std::move(figures).error();
      const double used = others.share().value_or(1);
      const bool counts = used <= kMostOfOthers;
      void_rounds += counts ? 0 : 1;
      if (!counts && tries < options_.rounds * kTriesOfARound) continue;
      for (const Figure& figure : *figures) {
        print(figure);
        errors.push_back(figure.error());
      }
      most_of_others = std::max(most_of_others, used);
      ++round;
    }
    conclude(std::move(errors), most_of_others, void_rounds);
    return {};
  }

  core::Result<std::vector<Figure>> measure_round(int round) {
    std::vector<Figure> figures;
    for (const LaneSetting setting : kSettings) {
      Figure figure{.setting = setting, .load = load_of_round(round)};
      figure.predicted = core::lane_goodput(costs_, figure.load, setting);
      if (figure.predicted <= 0) continue;
      const auto neighbour = neighbour_of(setting);
      if (neighbour.second < 0) continue;
      std::optional<Neighbour> beside;
      if (setting != LaneSetting::kAlone) beside.emplace(neighbour.first, neighbour.second);
      if (const int code = transport::bind_thread({place_.own}); code != 0) {
        return core::system_error("running on one processor", code);
      }
      auto measured = pump(figure.load, std::chrono::milliseconds(options_.time_ms));
      if (!measured) return std::move(measured).error();
      figure.measured = *measured;
      figures.push_back(figure);
    }
    return figures;
  }

  [[nodiscard]] std::pair<Neighbour::Kind, int> neighbour_of(LaneSetting setting) const {
    if (setting == LaneSetting::kHungryCache) {
      return {Neighbour::Kind::kHungry, place_.sharing.value_or(-1)};
    }
    return {Neighbour::Kind::kBusy, place_.own};
  }

  void print(const Figure& figure) const {
    if (options_.json) {
      print_json({{"setting", words_of(figure.setting)},
                  {"chunk_bytes", figure.load.chunk_bytes},
                  {"flows", figure.load.flows},
                  {"added", figure.load.added},
                  {"predicted_gb_s", figure.predicted / kGiga},
                  {"measured_gb_s", figure.measured / kGiga}});
      return;
    }
    fmt::print("{:>5} KiB {:>5} {:>5}  {:<16} {:>9.2f} {:>9.2f} {:>5.1f} %\n",
               figure.load.chunk_bytes >> 10, figure.load.flows, figure.load.added,
               words_of(figure.setting), figure.predicted / kGiga, figure.measured / kGiga,
               100 * figure.error());
  }

  void conclude(std::vector<double> errors, double most_of_others, int void_rounds) {
    if (errors.empty()) return;
    std::ranges::sort(errors);
    const double median = errors[errors.size() / 2];
    const bool is_valid = !is_void(most_of_others, "the comparison");
    if (options_.json) {
      print_json({{"median_error", median},
                  {"figures", errors.size()},
                  {"others", most_of_others},
                  {"void_rounds", void_rounds},
                  {"void", !is_valid || void_}});
      return;
    }
    fmt::print(
        "\nGB/s each way. Median error {:.1f} % of {} predictions{}; others used at most {:.0f} % "
        "of the processors in a round that counts, {} rounds did not count.\n",
        100 * median, errors.size(), is_valid && !void_ ? "" : " (void)", 100 * most_of_others,
        void_rounds);
    if (!place_.sharing) {
      fmt::print(
          "Sharing a cache: skipped, no other core that this process may use shares one with "
          "processor {}.\n",
          place_.own);
    }
  }

  void print_costs() const {
    fmt::print("{}\ncosts on processor {}, {}:\n", transport::machine_key(), place_.own, origin_);
    fmt::print("{:<28} {:>7} {:>7} {:>12} {:>7} {:>7} {:>10} {:>10}\n", "ns a byte (calls: ns)",
               "send", "receive", "into scratch", "add", "copy", "send call", "recv call");
    print_queue("alone", costs_.alone);
    if (costs_.busy) print_queue("beside a busy thread", *costs_.busy);
    if (costs_.hungry) print_queue("beside a hungry one", *costs_.hungry);
    fmt::print(
        "a turn of the loop {:.0f} ns, a look at a socket {:.0f} ns, to wake another thread "
        "{:.1f} us, share of a busy core {:.2f}\n",
        costs_.turn, costs_.look, costs_.hop / 1000, costs_.share);
  }

  static void print_queue(std::string_view setting, const core::QueueCosts& queue) {
    for (const bool is_far : {false, true}) {
      const core::ByteCosts& bytes = is_far ? queue.far : queue.close;
      fmt::print("{:<28} {:>7.3f} {:>7.3f} {:>12.3f} {:>7.3f} {:>7.3f} {:>10.0f} {:>10.0f}\n",
                 fmt::format("{}, {}", setting, is_far ? "4 MiB" : "128 KiB"), bytes.send,
                 bytes.receive, bytes.receive_scratch, bytes.add, bytes.copy, bytes.send_call,
                 bytes.receive_call);
    }
  }

  void print_model() const {
    if (options_.json) {
      print_json({{"model", gains_table(costs_)}});
      return;
    }
    fmt::print(
        "\nA model, not a measurement: Gbit/s that a host of 16 cores carries each way, by "
        "auxiliaries a rank.\n\n{}",
        gains_table(costs_));
  }

  // The peer's lanes need as many cores as the rank's.
  [[nodiscard]] std::vector<int> counts_to_measure() const {
    if (options_.auxiliaries > 0) return {0, options_.auxiliaries};
    if (cores_ < kCoresForGains) {
      skip_gain(
          fmt::format("it takes {} cores, and this process may use {}", kCoresForGains, cores_));
      return {};
    }
    return cores_ < kCoresForFour ? std::vector{0, 1, 2} : std::vector{0, 1, 2, 4};
  }

  void skip_gain(const std::string& why) const {
    if (options_.json) return print_json({{"gain", "skipped"}, {"why", why}});
    fmt::print("\nThe gain of auxiliaries is not measured: {}.\n", why);
  }

  core::Status measure_gain() {
    const std::vector<int> counts = counts_to_measure();
    if (counts.empty()) return {};
    if (const int code = transport::bind_thread(home_); code != 0) {
      return core::system_error("running on all processors", code);
    }
    if (!options_.json) {
      fmt::print("\nGB/s each way of a rank, inside this host: model and measurement{}\n",
                 cores_ < kCoresForGains
                     ? " (too few cores: lanes share them, which the model does not know)"
                     : "");
    }
    for (const bool in_arena : {true, false}) {
      const core::RankSite site{.cores = cores_, .in_arena = in_arena};
      for (const int count : counts) {
        const auto measured =
            rank_with_auxiliaries(site, count, std::chrono::milliseconds(kGainTime), log_);
        if (!measured) return measured.error();
        print_gain(site, count, *measured);
      }
    }
    return {};
  }

  void print_gain(const core::RankSite& site, int count, double measured) const {
    const double model = core::rank_goodput(costs_, site, count);
    const std::string_view memory = site.in_arena ? "arena" : "ordinary";
    if (options_.json) {
      print_json({{"auxiliaries", count},
                  {"tensors", memory},
                  {"model_gb_s", model / kGiga},
                  {"measured_gb_s", measured / kGiga}});
      return;
    }
    fmt::print("{:<8} tensors, {} auxiliaries: {:>6.2f} {:>6.2f}\n", memory, count, model / kGiga,
               measured / kGiga);
  }

  static void print_json(const nlohmann::ordered_json& line) { fmt::print("{}\n", line.dump()); }

  const PlacementOptions options_;
  core::Log& log_;
  const std::vector<int> home_ = transport::own_processors().usable;
  const int cores_ = transport::usable_cores();  // before this thread binds itself to one
  CalibrationPlace place_;
  core::LaneCosts costs_;
  std::string origin_;
  bool void_ = false;
};

}  // namespace

core::Result<bool> run_placement(const PlacementOptions& options, core::Log& log) {
  return Placement(options, log).run();
}

}  // namespace fasthorovod::tools
