#include "tools/fasthorovod-bench/mpi_contestant.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "tools/fasthorovod-bench/exchange.h"
#include "tools/fasthorovod-bench/worker_messages.h"
#include "tools/fasthorovod-bench/worker_talk.h"

namespace fasthorovod::tools {
namespace {

constexpr const char* kWorker = "fasthorovod-bench-mpi";

/// Beside this program, or else on PATH.
std::string worker_path() {
  std::error_code ignored;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto beside = own.parent_path() / kWorker;
  return std::filesystem::exists(beside, ignored) ? beside.string() : std::string(kWorker);
}

/// Open MPI takes neither root nor more processes than there are cores unless told so.
void allow_what_this_program_allows() {
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "OMPI_MCA_rmaps_base_oversubscribe"}) {
    setenv(name, "1", 0);  // NOLINT(concurrency-mt-unsafe): before any thread
  }
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

core::Result<std::unique_ptr<MpiContestant>> MpiContestant::start(const std::string& mpirun,
                                                                  const core::Config& config) {
  std::unique_ptr<MpiContestant> contestant(new MpiContestant);
  if (config.rank != 0) return contestant;
  allow_what_this_program_allows();
  std::vector<std::string> command = words_of(mpirun);
  if (command.empty()) command.emplace_back("mpirun");
  const std::string size = std::to_string(config.size);
  for (const std::string& word : {std::string("-np"), size, worker_path(), size}) {
    command.push_back(word);
  }
  auto process = LineProcess::start(command);
  if (!process) return std::move(process).error().with_context("--backend mpi");
  contestant->process_ = *std::move(process);
  return contestant;
}

core::Status MpiContestant::meet(ops::Engine& engine) {
  engine_ = &engine;
  const auto runs = [this]() -> core::Result<int> {
    if (process_ == nullptr) return 0;
    core::Result<std::string> answer = hear_answer(*process_, "here");
    if (!answer) {
      return std::move(answer).error().with_context(
          fmt::format("--backend mpi needs {}, which is built where MPI is found (Debian: "
                      "libopenmpi-dev), and mpirun",
                      kWorker));
    }
    return 0;
  };
  core::Result<std::vector<double>> all = agree(engine, runs(), name());
  return all ? core::Status() : std::move(all).error();
}

core::Result<std::vector<Sample>> MpiContestant::lead(const Turn& turn) {
  if (core::Status told = process_->tell(worker_run(turn, 0, engine_->world().size)); !told) {
    return std::move(told).error();
  }
  core::Result<std::string> answer = hear_answer(*process_, "took");
  if (!answer) return std::move(answer).error();
  return parse_worker_samples(*answer, static_cast<std::size_t>(turn.iterations));
}

// What rank 0 hears is told to all ranks, by a number of samples (or none) and then themselves.
core::Result<std::vector<Sample>> MpiContestant::take(const Turn& turn) {
  core::Result<std::vector<Sample>> samples = std::vector<Sample>();
  if (process_ != nullptr) samples = lead(turn);
  const core::Result<int> outcome = samples ? core::Result<int>(0) : samples.error();
  core::Result<std::vector<double>> all = agree(*engine_, outcome, name());
  if (!all) return std::move(all).error();
  std::vector<double> own(2 * static_cast<std::size_t>(turn.iterations));
  for (std::size_t at = 0; at < samples->size(); ++at) {
    own[2 * at] = (*samples)[at].microseconds;
    own[2 * at + 1] = static_cast<double>((*samples)[at].wrong);
  }
  all = exchange_numbers(*engine_, own);
  if (!all) return std::move(all).error();
  std::vector<Sample> told;
  for (std::size_t at = 0; at < own.size(); at += 2) {
    told.push_back({(*all)[at], static_cast<std::uint64_t>((*all)[at + 1])});
  }
  return told;
}

}  // namespace fasthorovod::tools
