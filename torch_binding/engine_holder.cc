#include "torch_binding/engine_holder.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace fasthorovod::torch_binding {
namespace {

/// What stop_running() returned. Goes after the lock on the life cycle: the callbacks it waits for
/// may drop the last reference to a group, which then leaves.
struct Ended {
  std::shared_ptr<RunningEngine> engine;
  ~Ended() {
    if (engine != nullptr && engine->completions != nullptr) engine->completions->stop();
  }
};

}  // namespace

/// Writes each line in one call, so that the lines of several ranks on one terminal do not mix.
std::unique_ptr<core::Log> log_to_standard_error(core::LogLevel level, int rank) {
  auto sink = [rank](core::LogLevel line_level, std::string_view line) {
    std::string text = "[" + std::to_string(rank) + "] fasthorovod ";
    text.append(core::to_string(line_level)).append(": ").append(line).push_back('\n');
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
  return std::make_unique<core::Log>(level, std::move(sink));
}

core::Status EngineHolder::init() {
  const std::lock_guard lifecycle(lifecycle_);
  if (running_for_horovod() != nullptr) return {};
  blocked_ = 0;
  if (running() != nullptr) {
    const std::lock_guard lock(mutex_);
    horovod_door_ = true;
    return {};
  }
  core::Result<core::ParsedConfig> parsed = core::parse_config(core::process_environment());
  if (!parsed) return std::move(parsed).error();
  auto started = std::make_shared<RunningEngine>();
  started->log = log_to_standard_error(parsed->config.log_level, parsed->config.rank);
  for (const std::string& warning : parsed->warnings) started->log->warning(warning);
  auto engine = ops::Engine::start(parsed->config, epoch_, *started->log);
  if (!engine) return std::move(engine).error();
  started->engine = *std::move(engine);
  ++epoch_;
  install(std::move(started));
  const std::lock_guard lock(mutex_);
  horovod_door_ = true;
  return {};
}

void EngineHolder::shutdown() {
  Ended ended;
  const std::lock_guard lifecycle(lifecycle_);
  if (running_for_horovod() == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    horovod_door_ = false;
  }
  if (groups_ == 0) ended.engine = stop_running();
}

core::Result<std::shared_ptr<RunningEngine>> EngineHolder::enter(const Decide& decide) {
  Ended ended;
  const std::lock_guard lifecycle(lifecycle_);
  auto entry = decide(running(), running_for_horovod() != nullptr);
  if (!entry) return std::move(entry).error();
  if (!entry->share) {
    ended.engine = stop_running();
    auto started = std::make_shared<RunningEngine>();
    started->log = log_to_standard_error(entry->config.log_level, entry->config.rank);
    auto engine = entry->start(entry->config, *started->log);
    if (!engine) return std::move(engine).error();
    started->engine = *std::move(engine);
    started->global_ranks = std::move(entry->global_ranks);
    started->groups_led = 1;  // the group that starts it
    install(std::move(started));
  }
  const std::lock_guard lock(mutex_);
  if (running_->completions == nullptr) {
    running_->completions = std::make_unique<CompletionThread>();
  }
  ++groups_;
  return running_;
}

void EngineHolder::leave(const std::shared_ptr<RunningEngine>& left) {
  Ended ended;
  const std::lock_guard lifecycle(lifecycle_);
  if (running() != left) return;  // stopped before, or of the process that forked this one
  if (--groups_ == 0 && running_for_horovod() == nullptr) ended.engine = stop_running();
}

void EngineHolder::stop() {
  Ended ended;
  const std::lock_guard lifecycle(lifecycle_);
  ended.engine = stop_running();
}

std::shared_ptr<RunningEngine> EngineHolder::running() const {
  const std::lock_guard lock(mutex_);
  return owner_ == ::getpid() ? running_ : nullptr;
}

std::shared_ptr<RunningEngine> EngineHolder::running_for_horovod() const {
  const std::lock_guard lock(mutex_);
  return owner_ == ::getpid() && horovod_door_ ? running_ : nullptr;
}

void EngineHolder::install(std::shared_ptr<RunningEngine> started) {
  const std::lock_guard lock(mutex_);
  if (running_ != nullptr) {
    // The engine of the process that forked this one: its threads are not here to be joined.
    [[maybe_unused]] auto* const abandoned =
        new std::shared_ptr<RunningEngine>(std::move(running_));
  }
  horovod_door_ = false;
  groups_ = 0;
  owner_ = ::getpid();
  running_ = std::move(started);
}

std::shared_ptr<RunningEngine> EngineHolder::stop_running() {
  std::shared_ptr<RunningEngine> stopping = running();
  if (stopping == nullptr) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    running_.reset();
    horovod_door_ = false;
  }
  groups_ = 0;
  stopping->engine->shutdown();
  return stopping;
}

}  // namespace fasthorovod::torch_binding
