#include "torch_binding/c10d/meeting.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "core/config.h"
#include "core/mixer.h"
#include "torch_binding/c10d/first_word.h"
#include "torch_binding/c10d/group_members.h"
#include "torch_binding/c10d/hex.h"
#include "torch_binding/c10d/store_meeting.h"
#include "torch_binding/c10d/torch_store.h"
#include "transport/control_plane.h"
#include "transport/secret.h"

namespace fasthorovod::torch_binding {
namespace {

using core::Error;
using core::ErrorCode;
using core::Result;

/// One attempt of one member.
class Attempt final {
 public:
  Attempt(const c10d::DistributedBackendOptions& options, c10::intrusive_ptr<c10d::Store> store,
          core::ParsedConfig parsed)
      : options_(options),
        parsed_(std::move(parsed)),
        store_(std::move(store)),
        deadline_(core::Clock::now() + limit()) {}

  Result<EngineHolder::Entry> decide(const std::shared_ptr<RunningEngine>& running,
                                     bool horovod_door);

  [[nodiscard]] core::GroupId id() const { return word_.id; }

 private:
  [[nodiscard]] bool is_default_group() const { return options_.global_ranks_in_group.empty(); }
  [[nodiscard]] std::chrono::milliseconds limit() const {
    // Torch's limit, unless the user said otherwise.
    const char* given = std::getenv("FASTHOROVOD_START_TIMEOUT");
    const char* alias = std::getenv("HOROVOD_START_TIMEOUT");
    if ((given != nullptr && *given != 0) || (alias != nullptr && *alias != 0)) {
      return parsed_.config.start_timeout;
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout);
  }

  /// Groups are told apart by their members. Those with the same ones meet in the order in which
  /// the members make them, which is one for all.
  [[nodiscard]] std::string members_tag() const {
    core::Mixer mixer;
    for (const std::int64_t rank : options_.global_ranks_in_group) {
      mixer.add(static_cast<std::uint64_t>(rank));
    }
    return std::to_string(options_.group_size) + "." + std::to_string(mixer.value()) + "/";
  }

  Result<FirstWord> say(const std::shared_ptr<RunningEngine>& running, bool horovod_door);
  Result<EngineHolder::Entry> entry(const std::shared_ptr<RunningEngine>& running,
                                    bool horovod_door);
  Result<std::unique_ptr<ops::Engine>> start(const core::Config& config, core::Log& log);
  Result<transport::Secret> secret(core::Log& log) const;

  const c10d::DistributedBackendOptions& options_;
  core::ParsedConfig parsed_;
  c10::intrusive_ptr<c10d::Store> store_;
  core::TimePoint deadline_;
  FirstWord word_;
};

std::string job_of(const RunningEngine& running) { return hex(running.engine->world().job); }

Result<EngineHolder::Entry> Attempt::decide(const std::shared_ptr<RunningEngine>& running,
                                            bool horovod_door) {
  TorchStore store(store_, members_tag());
  if (options_.group_rank == 0) {
    auto word = say(running, horovod_door);
    if (!word) return std::move(word).error();
    word_ = *word;
    auto status = answer_members(store, options_.group_size, word_, deadline_);
    if (!status) return std::move(status).error();
  } else {
    auto word = ask_first_member(store, options_.group_rank, deadline_);
    if (!word) return std::move(word).error();
    word_ = *word;
  }
  return entry(running, horovod_door);
}

Result<FirstWord> Attempt::say(const std::shared_ptr<RunningEngine>& running, bool horovod_door) {
  FirstWord word;
  // An engine that only earlier groups use serves new sub-groups, but no new default group: the
  // others may have left it already.
  const bool usable = running != nullptr && (horovod_door || !is_default_group()) &&
                      members_in(*running, options_).has_value() &&
                      (!is_default_group() || running->engine->world().size == options_.group_size);
  if (usable) {
    word.share = true;
    word.job = job_of(*running);
    // Unique without asking anybody: the leader's rank and how many groups it has led.
    if (++running->groups_led > 0xffff) {
      return Error{ErrorCode::kUnavailable, "one rank can lead 65535 groups of one engine"};
    }
    word.id =
        (static_cast<core::GroupId>(running->engine->world().rank) << 16) | running->groups_led;
    return word;
  }
  std::array<std::byte, 16> job{};
  if (auto status = transport::fill_random(job); !status) return std::move(status).error();
  word.job = hex(job);
  word.id = 1;
  if (parsed_.config.secret_file.empty() && options_.group_size > 1) {
    if (parsed_.config.require_secret) {
      return Error{ErrorCode::kInvalidArgument,
                   "FASTHOROVOD_REQUIRE_SECRET is 1, but FASTHOROVOD_SECRET_FILE is not set"};
    }
    auto made = transport::Secret::generate();
    if (!made) return std::move(made).error();
    word.secret = *made;
  }
  return word;
}

Result<EngineHolder::Entry> Attempt::entry(const std::shared_ptr<RunningEngine>& running,
                                           bool horovod_door) {
  if (word_.share) {
    if (running == nullptr || job_of(*running) != word_.job || !members_in(*running, options_)) {
      return Error{ErrorCode::kInvalidArgument,
                   "rank 0 of the group has an engine running from hvd.init() or an earlier group, "
                   "and this rank is not in that world; start and end them on all ranks alike"};
    }
    return EngineHolder::Entry{.share = true, .config = {}, .start = {}, .global_ranks = {}};
  }
  if (running != nullptr && (horovod_door || !is_default_group())) {
    return Error{ErrorCode::kInvalidArgument,
                 "this process has an engine running from hvd.init() or another group, and the "
                 "ranks of this group are not all in that world"};
  }
  EngineHolder::Entry entry;
  entry.config = parsed_.config;
  entry.config.rank = options_.group_rank;
  entry.config.size = options_.group_size;
  entry.config.job = word_.job;
  entry.config.store.clear();
  entry.config.rendezvous.clear();
  entry.config.start_timeout = until(deadline_);
  entry.global_ranks = options_.global_ranks_in_group;
  entry.start = [this](const core::Config& config, core::Log& log) { return start(config, log); };
  return entry;
}

Result<transport::Secret> Attempt::secret(core::Log& log) const {
  const std::string& file = parsed_.config.secret_file;
  if (word_.secret != kNoSecret) {
    if (!file.empty() || parsed_.config.require_secret) {
      return Error{ErrorCode::kInvalidArgument,
                   "rank 0 has no secret file and made a secret, but this rank has one or requires "
                   "one; set FASTHOROVOD_SECRET_FILE on all ranks or on none"};
    }
    if (options_.group_rank == 0) {
      log.info(
          "no FASTHOROVOD_SECRET_FILE: rank 0 made a secret and shares it through torch's store; "
          "it keeps out who cannot read that store, and nobody else");
    }
    return transport::Secret::from_bytes(std::as_bytes(std::span(word_.secret)));
  }
  if (options_.group_size == 1) return transport::Secret::from_bytes({});
  if (file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "rank 0 uses a secret file, but FASTHOROVOD_SECRET_FILE is not set on this rank"};
  }
  return transport::Secret::from_file(file);
}

Result<std::unique_ptr<ops::Engine>> Attempt::start(const core::Config& config, core::Log& log) {
  for (const std::string& warning : parsed_.warnings) log.warning(warning);
  auto proof = secret(log);
  if (!proof) return std::move(proof).error();
  TorchStore store(store_, word_.job + "/");
  return ops::Engine::start(config, 0, log, {store, place_of(store_), std::move(*proof)});
}

}  // namespace

c10::intrusive_ptr<c10d::Store> meeting_store(const c10d::DistributedBackendOptions& options) {
  // The device and the group's name; and that of the default group before those of all others.
  const bool is_default_group = options.global_ranks_in_group.empty();
  return store_below(options.store, is_default_group ? 2 : 3);
}

Result<Group> form_group(const c10d::DistributedBackendOptions& options,
                         const c10::intrusive_ptr<c10d::Store>& store, EngineHolder& holder) {
  auto parsed = core::parse_config(core::process_environment());
  if (!parsed) return std::move(parsed).error();
  Attempt attempt(options, store->clone(), *std::move(parsed));
  auto running = holder.enter([&](const std::shared_ptr<RunningEngine>& engine, bool horovod_door) {
    return attempt.decide(engine, horovod_door);
  });
  if (!running) return std::move(running).error();
  Group group;
  group.running = *std::move(running);
  group.id = attempt.id();
  group.rank = options.group_rank;
  group.size = options.group_size;
  group.time_limit = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
  group.name = options.group_id;
  group.meeting_store = store;
  for (const std::int64_t rank : options.global_ranks_in_group) {
    group.global_ranks.push_back(static_cast<std::uint64_t>(rank));
  }
  const auto members = members_in(*group.running, options);
  if (auto status = group.running->engine->add_group(group.id, *members); !status) {
    holder.leave(group.running);
    return std::move(status).error();
  }
  return group;
}

}  // namespace fasthorovod::torch_binding
