#include "tools/fasthorovod-bench/plan_facts.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <span>

#include "tools/fasthorovod-bench/exchange.h"

namespace fasthorovod::tools {
namespace {

constexpr std::size_t kTried = 12;  // of the numbers tried, the highest so many are told
constexpr const char* kCongestion = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Numbers for exchange_numbers, and what they were: both ways by one description.
class Writer final {
 public:
  template <typename T>
  void operator()(const T& value) {
    numbers.push_back(static_cast<double>(value));
  }
  void operator()(const std::optional<int>& value) { numbers.push_back(value.value_or(-1)); }

  std::vector<double> numbers;
};

class Reader final {
 public:
  explicit Reader(std::span<const double> numbers) : left_(numbers) {}
  template <typename T>
  void operator()(T& value) {
    value = static_cast<T>(left_.front());
    left_ = left_.subspan(1);
  }
  void operator()(std::optional<int>& value) {
    int number = 0;
    (*this)(number);
    value = number < 0 ? std::nullopt : std::optional(number);
  }

 private:
  std::span<const double> left_;
};

template <typename Visitor, typename Facts>
void visit_lanes(Visitor& visit, Facts& facts) {
  visit(facts.plan.lanes);
  visit(facts.plan.auxiliaries);
  visit(facts.plan.flows);
  visit(facts.plan.measures_flows);
  visit(facts.wish.lanes);
  visit(facts.wish.auxiliaries);
  visit(facts.wish.flows);
  visit(facts.wish.cores);
  visit(facts.wish.link_mbit);
  visit(facts.wish.lane_mbit);
  visit(facts.wish.auxiliary_mbit);
  visit(facts.around.ranks_on_host);
  visit(facts.around.peers_elsewhere);
}

template <typename Visitor, typename Facts>
void visit_flows(Visitor& visit, Facts& facts) {
  visit(facts.opened);
  visit(facts.in_use);
  visit(facts.measures);
  visit(facts.tries);
  visit(facts.waits_for_work);
  visit(facts.slowest);
  visit(facts.fastest);
  visit(facts.goodput);
  for (auto& tried : facts.tried) {
    visit(tried.flows);
    visit(tried.goodput);
  }
}

FlowFacts facts_of(const transport::PeerReport& report) {
  FlowFacts facts{.to = report.peer,
                  .opened = static_cast<int>(report.flows.size()),
                  .measures = report.measures,
                  .tries = report.tries,
                  .waits_for_work = report.waits_for_work,
                  .goodput = report.goodput};
  for (const auto& flow : report.flows) {
    if (!flow.in_use) continue;
    ++facts.in_use;
    if (flow.rate == 0) continue;
    facts.slowest = facts.slowest == 0 ? flow.rate : std::min(facts.slowest, flow.rate);
    facts.fastest = std::max(facts.fastest, flow.rate);
  }
  const std::size_t skipped = report.tried.size() - std::min(report.tried.size(), kTried);
  facts.tried.assign(report.tried.begin() + static_cast<std::ptrdiff_t>(skipped),
                     report.tried.end());
  return facts;
}

/// Room for what comes from another rank.
FlowFacts empty_facts() {
  FlowFacts facts;
  facts.tried.resize(kTried);
  return facts;
}

core::Result<std::vector<LaneFacts>> gather_lanes(ops::Engine& engine,
                                                  const ops::LaneReport& report) {
  LaneFacts own{.plan = report.plan, .wish = report.reasons.wish, .around = report.reasons.around};
  Writer writer;
  visit_lanes(writer, own);
  const auto all = exchange_numbers(engine, writer.numbers);
  if (!all) return all.error();
  std::vector<LaneFacts> lanes;
  for (std::size_t at = 0; at < all->size(); at += writer.numbers.size()) {
    Reader reader(std::span<const double>(*all).subspan(at));
    visit_lanes(reader, lanes.emplace_back());
  }
  return lanes;
}

/// From every rank to one peer.
core::Result<std::vector<FlowFacts>> gather_flows_to(ops::Engine& engine, int peer,
                                                     const ops::LaneReport& report) {
  FlowFacts own;
  const auto found = std::ranges::find(report.peers, peer, &transport::PeerReport::peer);
  if (found != report.peers.end()) own = facts_of(*found);
  own.tried.resize(kTried);
  Writer writer;
  visit_flows(writer, own);
  const auto all = exchange_numbers(engine, writer.numbers);
  if (!all) return all.error();
  std::vector<FlowFacts> flows;
  for (std::size_t at = 0; at < all->size(); at += writer.numbers.size()) {
    FlowFacts facts = empty_facts();
    facts.from = static_cast<int>(at / writer.numbers.size());
    facts.to = peer;
    Reader reader(std::span<const double>(*all).subspan(at));
    visit_flows(reader, facts);
    std::erase_if(facts.tried, [](const auto& tried) { return tried.flows == 0; });
    if (facts.opened > 0) flows.push_back(std::move(facts));
  }
  return flows;
}

std::string congestion_of(const core::Config& config) {
  if (!config.tcp_congestion.empty()) return config.tcp_congestion;
  std::string name;
  std::ifstream(kCongestion) >> name;
  return name;
}

bool has_settled(const transport::PeerReport& peer) {
  if (!peer.measures || peer.waits_for_work) return true;
  return !peer.tries && peer.tried.size() > 1;
}

}  // namespace

bool operator==(const LaneFacts& a, const LaneFacts& b) {
  return a.plan == b.plan && a.wish == b.wish && a.around.ranks_on_host == b.around.ranks_on_host &&
         a.around.peers_elsewhere == b.around.peers_elsewhere;
}

core::Result<PlanFacts> gather_plan(ops::Engine& engine, const core::Config& config) {
  PlanFacts facts{.world = engine.world(),
                  .data_plane = config.data_plane,
                  .congestion = congestion_of(config),
                  .congestion_forced = !config.tcp_congestion.empty(),
                  .allreduces = engine.allreduce_plan()};
  const ops::LaneReport report = engine.lane_report();
  auto lanes = gather_lanes(engine, report);
  if (!lanes) return std::move(lanes).error();
  facts.lanes = *std::move(lanes);
  for (int peer = 0; peer < facts.world.size; ++peer) {
    auto flows = gather_flows_to(engine, peer, report);
    if (!flows) return std::move(flows).error();
    for (FlowFacts& one : *flows) facts.flows.push_back(std::move(one));
  }
  std::ranges::stable_sort(facts.flows, {}, &FlowFacts::from);
  return facts;
}

bool has_settled(const ops::LaneReport& report) {
  return std::ranges::all_of(report.peers, [](const auto& peer) { return has_settled(peer); });
}

}  // namespace fasthorovod::tools
