#include "tools/fasthorovod-bench/gloo_contestant.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "tools/fasthorovod-bench/gloo_worker.h"
#include "tools/fasthorovod-bench/worker_messages.h"
#include "tools/fasthorovod-bench/worker_talk.h"
#include "transport/endpoint.h"

namespace fasthorovod::tools {
namespace {

std::string meeting_host(const core::Config& config) {
  const std::string& place = config.store.empty() ? config.rendezvous : config.store;
  const core::Result<transport::HostPort> parsed = transport::parse_host_port(place);
  return parsed ? parsed->host : "127.0.0.1";
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

core::Status GlooContestant::meet(ops::Engine& engine) {
  const auto port_heard = [this]() -> core::Result<int> {
    core::Result<std::string> text = hear_answer(*process_, "here");
    return text ? parse_worker_port(*text) : std::move(text).error();
  };
  core::Result<std::vector<double>> ports = agree(engine, port_heard(), name());
  if (!ports) return std::move(ports).error();
  const auto met = [&]() -> core::Result<int> {
    core::Status told = process_->tell(fmt::format("meet {}", static_cast<int>(ports->front())));
    if (!told) return std::move(told).error();
    core::Result<std::string> ready = hear_answer(*process_, "ready");
    return ready ? core::Result<int>(0) : std::move(ready).error();
  };
  core::Result<std::vector<double>> all = agree(engine, met(), name());
  return all ? core::Status() : std::move(all).error();
}

core::Result<std::vector<Sample>> GlooContestant::take(const Turn& turn) {
  return ask(worker_run(turn, rank_, size_), turn.iterations);
}

core::Result<std::vector<Sample>> GlooContestant::ask(const std::string& line, int samples) {
  if (core::Status told = process_->tell(line); !told) return std::move(told).error();
  core::Result<std::string> answer = hear_answer(*process_, "took");
  if (!answer) return std::move(answer).error().with_context("gloo");
  return parse_worker_samples(*answer, static_cast<std::size_t>(samples));
}

}  // namespace fasthorovod::tools
