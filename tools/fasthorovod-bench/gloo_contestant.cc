#include "tools/fasthorovod-bench/gloo_contestant.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "tools/fasthorovod-bench/exchange.h"
#include "tools/fasthorovod-bench/gloo_messages.h"
#include "tools/fasthorovod-bench/gloo_worker.h"
#include "transport/endpoint.h"

namespace fasthorovod::tools {
namespace {

constexpr int kAbsent = -1;  // what a rank without a worker says in place of a port

std::string meeting_host(const core::Config& config) {
  const std::string& place = config.store.empty() ? config.rendezvous : config.store;
  const core::Result<transport::HostPort> parsed = transport::parse_host_port(place);
  return parsed ? parsed->host : "127.0.0.1";
}

/// Tells all ranks the outcome of this one and the number that goes with it. The numbers of all, or
/// the error of the first rank that has one.
core::Result<std::vector<double>> agree(ops::Engine& engine, const core::Result<int>& own) {
  const int number = own ? *own : kAbsent;
  core::Result<std::vector<double>> all = exchange_numbers(engine, {static_cast<double>(number)});
  if (!own) return own.error();
  if (!all) return all;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank] != kAbsent) continue;
    return core::Error{
        core::ErrorCode::kUnavailable,
        fmt::format("{} has no gloo; it says why", engine.world().describe(static_cast<int>(rank))),
        static_cast<int>(rank)};
  }
  return all;
}

}  // namespace

core::Result<std::unique_ptr<GlooContestant>> GlooContestant::start(const std::string& python,
                                                                    const core::Config& config) {
  auto process = LineProcess::start({python, "-c", kGlooWorkerText, std::to_string(config.rank),
                                     std::to_string(config.size), meeting_host(config)});
  if (!process) {
    return std::move(process).error().with_context(
        "--backend gloo runs torch in Python, which --python names");
  }
  std::unique_ptr<GlooContestant> contestant(new GlooContestant(*std::move(process)));
  contestant->rank_ = config.rank;
  contestant->size_ = config.size;
  return contestant;
}

/// What follows the expected word in the worker's next line.
core::Result<std::string> GlooContestant::hear(std::string_view word) {
  core::Result<std::string> line = process_->hear();
  if (!line) return std::move(line).error().with_context("gloo's worker");
  return gloo_answer(*line, word);
}

core::Status GlooContestant::meet(ops::Engine& engine) {
  const auto port_heard = [this]() -> core::Result<int> {
    core::Result<std::string> text = hear("here");
    return text ? parse_gloo_port(*text) : std::move(text).error();
  };
  core::Result<std::vector<double>> ports = agree(engine, port_heard());
  if (!ports) return std::move(ports).error();
  const auto met = [&]() -> core::Result<int> {
    core::Status told = process_->tell(fmt::format("meet {}", static_cast<int>(ports->front())));
    if (!told) return std::move(told).error();
    core::Result<std::string> ready = hear("ready");
    return ready ? core::Result<int>(0) : std::move(ready).error();
  };
  core::Result<std::vector<double>> all = agree(engine, met());
  return all ? core::Status() : std::move(all).error();
}

core::Result<std::vector<Sample>> GlooContestant::take(const Turn& turn) {
  if (core::Status told = process_->tell(gloo_run(turn, rank_, size_)); !told)
    return std::move(told).error();
  core::Result<std::string> answer = hear("took");
  if (!answer) return std::move(answer).error().with_context("gloo");
  return parse_gloo_samples(*answer, static_cast<std::size_t>(turn.iterations));
}

}  // namespace fasthorovod::tools
