#include "tools/fasthorovod-bench/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/aux_cores.h"
#include "tools/fasthorovod-bench/plan_allreduces.h"

namespace fasthorovod::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMegabits = 8e-6;  // of a byte
constexpr double kUsOfMs = 1000;
constexpr double kBytesOfMib = 1 << 20;

double mbit(double rate) { return rate * kMegabits; }

std::string forced_or(const std::optional<int>& told, const char* variable, const char* otherwise) {
  return told ? fmt::format("forced by FASTHOROVOD_{}", variable) : otherwise;
}

/// A choice of some ranks.
struct Choice {
  std::string what;
  std::string value;
  std::string mark;  // "measured", "default", or "forced by ..."
  std::string why;
};

std::string rule_of_auxiliaries(const LaneFacts& lanes) {
  if (!lanes.around.peers_elsewhere) return "all ranks share memory";
  const std::string share =
      fmt::format("cores {}, ranks on the host {}: what the share of each has beyond {}",
                  lanes.wish.cores, lanes.around.ranks_on_host, core::kCoresOfARank);
  if (lanes.wish.link_mbit == 0) return share + ", at most 2";
  return fmt::format("{}, to fill a link of {} Mbit/s by a lane of {} and auxiliaries of {}", share,
                     lanes.wish.link_mbit, lanes.wish.lane_mbit, lanes.wish.auxiliary_mbit);
}

Choice lanes_of(const LaneFacts& lanes) {
  const int threads = lanes.plan.lanes - lanes.plan.auxiliaries;
  return {.what = "lanes",
          .value = fmt::format("{}: {} in threads of the rank, {} in auxiliaries", lanes.plan.lanes,
                               threads, lanes.plan.auxiliaries),
          .mark = forced_or(lanes.wish.lanes, "LANES", "default"),
          .why = lanes.wish.lanes ? "" : "one, and one for each auxiliary"};
}

Choice auxiliaries_of(const LaneFacts& lanes) {
  return {.what = "auxiliaries",
          .value = fmt::format("{}", lanes.plan.auxiliaries),
          .mark = forced_or(lanes.wish.auxiliaries, "AUX", "default"),
          .why = lanes.wish.auxiliaries ? "" : rule_of_auxiliaries(lanes)};
}

Choice flows_of(const LaneFacts& lanes) {
  return {
      .what = "flows of a lane",
      .value = fmt::format("{}{} to a peer", lanes.wish.flows ? "" : "up to ", lanes.plan.flows),
      .mark = forced_or(lanes.wish.flows, "FLOWS", "measured"),
      .why = lanes.wish.flows ? "" : "how many are in use is below"};
}

std::vector<Choice> choices_of(const LaneFacts& lanes) {
  return {lanes_of(lanes), auxiliaries_of(lanes), flows_of(lanes)};
}

std::vector<Choice> choices_of_all(const PlanFacts& facts) {
  const bool mpi = facts.data_plane == core::DataPlane::kMpi;
  std::vector<Choice> choices{{.what = "data plane",
                               .value = mpi ? "mpi" : "tcp",
                               .mark = mpi ? "forced by FASTHOROVOD_DATA_PLANE" : "default",
                               .why = ""}};
  if (mpi) return choices;
  choices.push_back(
      {.what = "congestion control",
       .value = facts.congestion,
       .mark = facts.congestion_forced ? "forced by FASTHOROVOD_TCP_CONGESTION" : "default",
       .why = facts.congestion_forced ? "" : "the system's"});
  return choices;
}

/// Ranks that have chosen alike, by the first of them.
std::vector<std::pair<std::vector<int>, LaneFacts>> alike(const PlanFacts& facts) {
  std::vector<std::pair<std::vector<int>, LaneFacts>> groups;
  for (std::size_t rank = 0; rank < facts.lanes.size(); ++rank) {
    const auto same = std::ranges::find(groups, facts.lanes[rank],
                                        &std::pair<std::vector<int>, LaneFacts>::second);
    if (same != groups.end()) {
      same->first.push_back(static_cast<int>(rank));
    } else {
      groups.push_back({{static_cast<int>(rank)}, facts.lanes[rank]});
    }
  }
  return groups;
}

const char* mark_of(const FlowFacts& flows) {
  if (!flows.measures) return "forced by FASTHOROVOD_FLOWS";
  return flows.tried.empty() ? "default" : "measured";
}

std::string how(const FlowFacts& flows) {
  if (!flows.measures) return "";
  std::string text;
  for (const auto& [count, goodput] : flows.tried) {
    text += fmt::format("{}{}: {:.0f}", text.empty() ? "" : ", ", count, mbit(goodput));
  }
  if (flows.tries) text += fmt::format(" (now trying {})", flows.in_use);
  if (!text.empty()) return text;
  return flows.waits_for_work ? "the network is not the limit" : "too little was sent to tell";
}

double bus_rate(const PlanFacts& facts, const TimeFacts& time) {
  const double ranks = facts.world.size;
  return static_cast<double>(time.bytes) / time.median_us / 1000 * 2 * (ranks - 1) / ranks;
}

double cpu_us_a_mib(const TimeFacts& time) {
  return time.cpu_us * kBytesOfMib / static_cast<double>(time.bytes);
}

void print_choice(const Choice& choice, const std::string& ranks) {
  fmt::print(" {:<18} {:<10} {:<48} {:<36} {}\n", choice.what, ranks, choice.value, choice.mark,
             choice.why);
}

void print_choices(const PlanFacts& facts) {
  fmt::print("# ranks {}, hosts {}\n#\n", facts.world.size, facts.world.host_names.size());
  fmt::print("#{:<18} {:<10} {:<48} {:<36} {}\n", "choice", "ranks", "value", "is", "because");
  for (const Choice& choice : choices_of_all(facts)) print_choice(choice, "all");
  if (facts.data_plane == core::DataPlane::kMpi) return;
  for (const auto& [ranks, lanes] : alike(facts)) {
    const bool all = ranks.size() == facts.lanes.size();
    const std::string who = all ? "all" : fmt::format("{}", fmt::join(ranks, ","));
    for (const Choice& choice : choices_of(lanes)) print_choice(choice, who);
  }
}

void print_flows(const PlanFacts& facts) {
  if (facts.flows.empty()) return;
  fmt::print("#\n# flows of all lanes; rates in Mbit/s while the network is the limit\n");
  fmt::print("#{:>5} {:>5} {:>7} {:>7} {:>15} {:>9}  {:<28} {}\n", "from", "to", "opened", "in use",
             "each", "together", "in use is", "flows: together, as tried");
  for (const FlowFacts& flows : facts.flows) {
    const std::string each =
        flows.fastest == 0
            ? "-"
            : fmt::format("{:.0f} to {:.0f}", mbit(flows.slowest), mbit(flows.fastest));
    const std::string together =
        flows.goodput == 0 ? "-" : fmt::format("{:.0f}", mbit(flows.goodput));
    fmt::print(" {:>5} {:>5} {:>7} {:>7} {:>15} {:>9}  {:<28} {}\n", flows.from, flows.to,
               flows.opened, flows.in_use, each, together, mark_of(flows), how(flows));
  }
}

void print_allreduces(const PlanFacts& facts) {
  const std::vector<AllreduceChoice> choices = allreduce_choices(facts);
  if (choices.empty()) return;
  fmt::print("#\n# all-reduces between hosts: {}\n# predicted in us; {}\n",
             mark_of_allreduces(facts.allreduces),
             core::describe(facts.allreduces, facts.world.size));
  fmt::print("#{:>12}", "size");
  for (const std::string_view name : core::allreduce_algorithm_names()) {
    fmt::print(" {:>18}", name);
  }
  fmt::print("  used\n");
  for (const AllreduceChoice& choice : choices) {
    fmt::print(" {:>12}", choice.bytes);
    for (const double predicted : choice.predicted_us) fmt::print(" {:>18.0f}", predicted);
    fmt::print("  {}\n", core::to_string(choice.used));
  }
}

void print_times(const PlanFacts& facts) {
  fmt::print("#\n# all-reduces of float32 of the calibration\n");
  fmt::print("#{:>12} {:>12} {:>10} {:>14}\n", "size", "time (us)", "busbw", "CPU us a MiB");
  for (const TimeFacts& time : facts.times) {
    fmt::print(" {:>12} {:>12.2f} {:>10.3f} {:>14.0f}\n", time.bytes, time.median_us,
               bus_rate(facts, time), cpu_us_a_mib(time));
  }
}

Json json_of(const Choice& choice) {
  return {{"choice", choice.what},
          {"value", choice.value},
          {"is", choice.mark},
          {"because", choice.why}};
}

Json json_of(const FlowFacts& flows) {
  Json tried = Json::array();
  for (const auto& [count, goodput] : flows.tried) {
    tried.push_back({{"flows", count}, {"mbit", mbit(goodput)}});
  }
  return {{"from", flows.from},
          {"to", flows.to},
          {"opened", flows.opened},
          {"in_use", flows.in_use},
          {"is", mark_of(flows)},
          {"slowest_mbit", mbit(flows.slowest)},
          {"fastest_mbit", mbit(flows.fastest)},
          {"goodput_mbit", mbit(flows.goodput)},
          {"trying", flows.tries},
          {"network_is_the_limit", !flows.waits_for_work && flows.goodput > 0},
          {"tried", tried}};
}

Json json_of(const LaneFacts& lanes, int rank) {
  Json choices = Json::array();
  for (const Choice& choice : choices_of(lanes)) choices.push_back(json_of(choice));
  return {{"rank", rank},
          {"cores", lanes.wish.cores},
          {"ranks_on_host", lanes.around.ranks_on_host},
          {"peers_elsewhere", lanes.around.peers_elsewhere},
          {"lanes", lanes.plan.lanes},
          {"auxiliaries", lanes.plan.auxiliaries},
          {"flows_of_a_lane", lanes.plan.flows},
          {"choices", choices}};
}

Json json_of(const AllreduceChoice& choice, const core::AllreducePlan& plan) {
  Json predicted;
  for (std::size_t i = 0; i < choice.predicted_us.size(); ++i) {
    const std::string_view name = core::allreduce_algorithm_names()[i];
    predicted[std::string(name)] = choice.predicted_us[i] / kUsOfMs;
  }
  return {{"bytes", choice.bytes},
          {"used", std::string(core::to_string(choice.used))},
          {"is", mark_of_allreduces(plan)},
          {"predicted_ms", predicted}};
}

void print_json(const PlanFacts& facts) {
  Json object{{"ranks", facts.world.size}, {"hosts", facts.world.host_names.size()}};
  for (const Choice& choice : choices_of_all(facts)) object["choices"].push_back(json_of(choice));
  object["lanes"] = Json::array();
  for (std::size_t rank = 0; rank < facts.lanes.size(); ++rank) {
    object["lanes"].push_back(json_of(facts.lanes[rank], static_cast<int>(rank)));
  }
  object["flows"] = Json::array();
  for (const FlowFacts& flows : facts.flows) object["flows"].push_back(json_of(flows));
  object["allreduces"] = Json::array();
  for (const AllreduceChoice& choice : allreduce_choices(facts)) {
    object["allreduces"].push_back(json_of(choice, facts.allreduces));
  }
  object["times"] = Json::array();
  for (const TimeFacts& time : facts.times) {
    object["times"].push_back({{"bytes", time.bytes},
                               {"time_ms", time.median_us / kUsOfMs},
                               {"busbw", bus_rate(facts, time)},
                               {"cpu_us_a_mib", cpu_us_a_mib(time)}});
  }
  fmt::print("{}\n", object.dump());
}

}  // namespace

void print_plan(const PlanFacts& facts, bool json) {
  if (json) {
    print_json(facts);
  } else {
    print_choices(facts);
    print_flows(facts);
    print_allreduces(facts);
    print_times(facts);
  }
  std::fflush(stdout);
}

}  // namespace fasthorovod::tools
