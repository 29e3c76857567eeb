#include "transport/mpi_start.h"

#include <span>
#include <utility>

#include "transport/mpi_process.h"
#include "transport/mpi_store.h"
#include "transport/mpi_words.h"

namespace fasthorovod::transport {
namespace {

core::Result<Secret> secret_of(const MpiWord& word, const core::Config& config, core::Log& log) {
  if (word.secret.empty()) return Secret::from_file(config.secret_file);
  if (config.rank == 0) {
    log.info(
        "no FASTHOROVOD_SECRET_FILE: rank 0 made a secret and sent it to the other ranks by MPI; "
        "it keeps out who cannot read MPI's messages, and nobody else");
  }
  return Secret::from_bytes(std::as_bytes(std::span(word.secret)));
}

}  // namespace

core::Result<std::unique_ptr<ControlPlane>> connect_over_mpi(const core::Config& config,
                                                             std::uint32_t epoch, core::Log& log) {
  const core::TimePoint deadline = core::Clock::now() + config.start_timeout;
  auto process = MpiProcess::enter(config, deadline);
  if (!process) return std::move(process).error();
  auto word = agree_over_mpi(**process, config, deadline);
  if (!word) return std::move(word).error();
  auto secret = secret_of(*word, config, log);
  if (!secret) return std::move(secret).error();
  MpiStore store(**process, word->attempt);
  return ControlPlane::connect(config, epoch, log, {store, "", *std::move(secret)});
}

}  // namespace fasthorovod::transport
