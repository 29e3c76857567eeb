#include "transport/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/allreduce_plans.h"
#include "transport/hop_probe.h"
#include "transport/lane_plans.h"
#include "transport/meeting.h"

namespace fasthorovod::transport {
namespace {

constexpr auto kReportEvery = std::chrono::milliseconds(500);
constexpr auto kGrace = std::chrono::milliseconds(1000);  // longer than it takes rank 0 to say why
constexpr auto kFarewell =
    std::chrono::milliseconds(1'000);  // for the last message of a start that failed

}  // namespace

Gathering::Gathering(boost::asio::io_context& context, ControlLinks& links, int size, Member own)
    : context_(context),
      report_timer_(context),
      links_(links),
      size_(size),
      places_(static_cast<std::size_t>(size), Place::kFree),
      members_(places_.size()),
      notes_(places_.size()) {
  places_[0] = Place::kTaken;
  members_[0] = std::move(own);
  present_ = 1;
  all_here_ = present_ == size_;
}

Verdict Gathering::admit(const Claim& claim) {
  if (claim.dialling_rank < 1 || claim.dialling_rank >= size_) return Verdict::kTaken;
  Place& place = places_[static_cast<std::size_t>(claim.dialling_rank)];
  if (place == Place::kTaken) return Verdict::kTaken;
  if (place == Place::kProving) return Verdict::kBusy;
  place = Place::kProving;
  return Verdict::kWelcome;
}

void Gathering::retract(const Claim& claim) {
  places_[static_cast<std::size_t>(claim.dialling_rank)] = Place::kFree;
}

void Gathering::welcome(Proven proven) {
  const int rank = proven.claim.dialling_rank;
  places_[static_cast<std::size_t>(rank)] = Place::kTaken;
  links_.add(rank, std::move(proven.socket), {proven.keys.of_answerer, proven.keys.of_dialler});
}

void Gathering::take(int rank, std::span<const std::byte> bytes) {
  auto message = decode_rendezvous(bytes);
  if (auto* introduction = message ? std::get_if<Introduction>(&*message) : nullptr) {
    introduce(rank, std::move(*introduction));
  } else {
    links_.drop(rank);
    free_place(rank, "did not introduce itself");
  }
}

void Gathering::introduce(int rank, Introduction introduction) {
  auto& member = members_[static_cast<std::size_t>(rank)];
  if (introduction.size != size_) {
    const core::Error error{core::ErrorCode::kInvalidArgument,
                            fmt::format("rank 0 was started in a world of {}, rank {} in one of {}",
                                        size_, rank, introduction.size),
                            rank};
    (void)links_.send(rank, encode(StartFailed{error}));
    links_.drop(rank);
    return free_place(
        rank, fmt::format("was started in a world of {} ranks, not {}", introduction.size, size_));
  }
  if (!member) ++present_;
  member = std::move(introduction.member);
  if (present_ < size_) return;
  // In one step with the last introduction: whatever comes next belongs to the engine.
  all_here_ = true;
  links_.detach();
}

void Gathering::free_place(int rank, std::string why) {
  const auto index = static_cast<std::size_t>(rank);
  if (members_[index]) {
    --present_;
    why = fmt::format("on host {} {}", members_[index]->placement.host_name, why);
    members_[index].reset();
  }
  places_[index] = Place::kFree;
  notes_[index] = std::move(why);
}

core::Status Gathering::gather(core::TimePoint deadline) {
  if (!all_here_) {
    links_.attach(
        {.on_message = [this](int rank, auto message) { take(rank, message); },
         .on_end = [this](int rank, const core::Error&) { free_place(rank, "came and left"); }});
    report_missing();
    run_until(context_, all_here_, deadline);
    report_timer_.cancel();
  }
  if (all_here_) return {};
  return timed_out();
}

core::Result<Roster> Gathering::wait(core::TimePoint deadline,
                                     const std::optional<core::ProcessorCosts>& processor) {
  if (core::Status status = gather(deadline); !status) return give_up(std::move(status).error());
  Roster roster;
  for (auto& member : members_) roster.members.push_back(std::move(*member));
  auto plan = plan_allreduces(deadline, roster.members, processor);
  if (!plan) return give_up(std::move(plan).error());
  roster.allreduce = *std::move(plan);
  send_to_all(roster);
  // A long roster may not fit into every socket at once.
  while (!links_.drained() && core::Clock::now() < deadline) {
    context_.restart();
    context_.run_one_for(std::chrono::milliseconds(10));
  }
  return roster;
}

// Nothing is measured where nothing is sent, or where it would not matter.
core::Result<core::AllreducePlan> Gathering::plan_allreduces(
    core::TimePoint deadline, std::span<const Member> members,
    const std::optional<core::ProcessorCosts>& processor) {
  const core::AllreduceWish& wish = members[0].allreduce;
  const std::vector<int> elsewhere = ranks_to_probe(members);
  if (!processor || wish.forced || wish.deterministic || elsewhere.empty()) {
    return plan_for(members, nullptr);
  }
  const HopProbe probe(links_, elsewhere);
  run_until(context_, probe.over(), deadline);
  const core::Result<core::HopCosts> hop = probe.costs();
  if (!hop) return hop.error();
  const core::CostFigures figures =
      core::measured_figures(*hop, *processor, LanePlans(members, 0).usual_flows());
  return plan_for(members, &figures);
}

core::Error Gathering::give_up(core::Error error) {
  send_to_all(StartFailed{error});
  links_.drain(core::Clock::now() + kFarewell);
  return error;
}

void Gathering::report_missing() {
  report_timer_.expires_after(kReportEvery);
  report_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || all_here_) return;
    send_to_all(missing());
    report_missing();
  });
}

Missing Gathering::missing() const {
  Missing result;
  for (int rank = 0; rank < size_; ++rank) {
    if (!members_[static_cast<std::size_t>(rank)]) result.ranks.push_back(rank);
  }
  result.count = static_cast<int>(result.ranks.size());
  return result;
}

core::Error Gathering::timed_out() const {
  const Missing who = missing();
  std::string text = fmt::format("{} of {} ranks came before the time limit; missing: {}", present_,
                                 size_, describe(who));
  for (const int rank : who.ranks) {
    const std::string& note = notes_[static_cast<std::size_t>(rank)];
    if (!note.empty()) text += fmt::format("; rank {} {}", rank, note);
  }
  return {core::ErrorCode::kTimedOut, text, who.ranks.empty() ? -1 : who.ranks.front()};
}

void Gathering::send_to_all(const RendezvousMessage& message) {
  const auto bytes = encode(message);
  for (int rank = 1; rank < size_; ++rank) (void)links_.send(rank, bytes);
}

core::Result<Roster> join(boost::asio::io_context& context, ControlLinks& links, Dialled rank_0,
                          const Introduction& introduction, core::TimePoint deadline) {
  std::optional<core::Result<Roster>> outcome;
  std::optional<Missing> missing;
  bool done = false;
  const auto finish = [&](core::Result<Roster> result) {
    outcome.emplace(std::move(result));
    done = true;
    links.detach();  // whatever comes next belongs to the engine
  };
  const std::string where = rank_0.endpoint.to_string();
  links.add(0, std::move(rank_0.socket), {rank_0.keys.of_dialler, rank_0.keys.of_answerer});
  links.attach({.on_message =
                    [&](int, std::span<const std::byte> bytes) {
                      auto message = decode_rendezvous(bytes);
                      if (!message) return finish(std::move(message).error());
                      if (auto* news = std::get_if<Missing>(&*message)) missing = std::move(*news);
                      if (auto* failed = std::get_if<StartFailed>(&*message))
                        finish(std::move(failed->error));
                      if (auto* roster = std::get_if<Roster>(&*message)) finish(std::move(*roster));
                      if (std::holds_alternative<Probe>(*message))
                        (void)links.send(0, encode(Probe{}));
                    },
                .on_end =
                    [&](int, core::Error error) {
                      error.culprit = 0;
                      finish(std::move(error).with_context(
                          fmt::format("rank 0 at {} left during the start", where)));
                    }});
  if (auto status = links.send(0, encode(introduction)); !status) return std::move(status).error();
  // Rank 0, whose time is up at about the same moment, knows who is missing: let it say so first.
  run_until(context, done, deadline + kGrace);
  links.detach();
  if (outcome) return std::move(*outcome);
  core::Error error{core::ErrorCode::kTimedOut,
                    fmt::format("rank 0 at {} did not say who is there", where), 0};
  if (missing && missing->count > 0 && !missing->ranks.empty()) {
    error.message = fmt::format("not all ranks came before the time limit; rank 0 at {} misses {}",
                                where, describe(*missing));
    error.culprit = missing->ranks.front();
  }
  return error;
}

}  // namespace fasthorovod::transport
