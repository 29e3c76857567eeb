#include "tools/fasthorovodrun/launch.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "core/config.h"
#include "core/log.h"
#include "tools/fasthorovodrun/command.h"
#include "tools/fasthorovodrun/keeper.h"
#include "tools/fasthorovodrun/secret_file.h"
#include "tools/fasthorovodrun/supervisor.h"
#include "transport/secret.h"
#include "transport/store_server.h"

namespace fasthorovod::tools {
namespace {

core::Result<core::JobId> random_job() {
  core::JobId job{};
  if (getrandom(job.data(), job.size(), 0) != static_cast<ssize_t>(job.size())) {
    return core::system_error("cannot make a job id", errno);
  }
  return job;
}

std::string hex(const core::JobId& job) {
  std::string text;
  for (const std::byte byte : job) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

/// Blocks the signals the loop reads. What was before is for workers.
OriginalProcess prepare_process(sigset_t& signals) {
  OriginalProcess original;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    const bool unwanted = signal == SIGHUP && action.sa_handler == SIG_IGN;  // started by nohup
    if (!unwanted) sigaddset(&signals, signal);
  }
  sigprocmask(SIG_BLOCK, &signals, &original.mask);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &original.on_broken_pipe);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &plain, nullptr);  // ignored, it would take the workers' exit codes away
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  getrlimit(RLIMIT_NOFILE, &original.files);
  return original;
}

/// Makes room for the descriptors of all workers, as far as this user may.
core::Status allow_files(const Options& options, rlimit limit) {
  constexpr rlim_t kOwn = 32;
  const rlim_t per_rank = options.output_directory.empty() ? 3 : 5;
  const rlim_t needed = kOwn + per_rank * static_cast<rlim_t>(options.ranks);
  if (limit.rlim_max < needed) {
    return core::Error{core::ErrorCode::kUnavailable,
                       fmt::format("{} ranks need {} open files here, and the limit is {} (ulimit "
                                   "-Hn)",
                                   options.ranks, needed, limit.rlim_max)};
  }
  limit.rlim_cur = std::max(limit.rlim_cur, needed);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return core::system_error("cannot open files", errno);
  return {};
}

std::vector<pid_t> children_from_before() {
  // A shell that became this process may have left children of its own.
  std::vector<pid_t> pids;
  for (const Process& process : all_processes()) {
    if (process.parent == getpid()) pids.push_back(process.pid);
  }
  return pids;
}

/// What exists of a job besides its processes.
struct Meeting {
  core::Log log;
  std::optional<SecretFile> secret_file;
  std::unique_ptr<transport::StoreServer> store;
  JobContact contact;

  Meeting()
      : log(core::LogLevel::kWarning, [](core::LogLevel, std::string_view line) {
          (void)std::fprintf(stderr, "fasthorovodrun: %.*s\n", static_cast<int>(line.size()),
                             line.data());
        }) {}
};

core::Status open_meeting(const core::JobId& job, Meeting& meeting) {
  core::Result<std::string> text = transport::Secret::generate();
  if (!text) return std::move(text).error();
  core::Result<SecretFile> file = SecretFile::create(*text);
  if (!file) return std::move(file).error();
  meeting.secret_file.emplace(std::move(*file));
  core::Result<transport::Secret> secret =
      transport::Secret::from_file(meeting.secret_file->path());
  if (!secret) return std::move(secret).error();
  // All ranks are on this machine, so nothing outside it may connect.
  auto store = transport::StoreServer::start("127.0.0.1", *secret, job, meeting.log);
  if (!store) return std::move(store).error();
  meeting.store = std::move(*store);
  meeting.contact = {meeting.store->endpoint(), meeting.secret_file->path(), hex(job)};
  return {};
}

core::Result<std::vector<CopyFiles>> open_copies(const Options& options) {
  std::vector<CopyFiles> all(static_cast<std::size_t>(options.ranks));
  if (options.output_directory.empty()) return all;
  for (int rank = 0; rank < options.ranks; ++rank) {
    core::Result<CopyFiles> files = make_copy_files(options.output_directory, rank, options.ranks);
    if (!files) return std::move(files).error().with_context("--output-filename");
    all[static_cast<std::size_t>(rank)] = std::move(*files);
  }
  return all;
}

std::optional<std::string> value_of(const std::vector<std::string>& environment,
                                    std::string_view name) {
  for (const std::string& entry : environment) {
    if (!name.empty() && entry.size() > name.size() && entry.starts_with(name) &&
        entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

/// Says what a setting is for the workers and which of command line, variable and default it comes
/// from.
void describe_setting(Printer& printer, const std::vector<std::string>& environment,
                      std::string_view name, std::string_view option) {
  const auto& settings = core::settings();
  const auto setting = std::ranges::find(settings, name, &core::Setting::name);
  if (setting == settings.end()) return;
  std::string origin = fmt::format("{} (the default)", setting->default_text);
  for (const std::string_view variable : {setting->horovod_alias, setting->name}) {
    const std::optional<std::string> value = value_of(environment, variable);
    if (value) origin = fmt::format("{} (from {})", *value, variable);
  }
  if (!option.empty()) origin = fmt::format("{} (from the command line)", option);
  printer.say(fmt::format("{}={}", name, origin));
}

void describe_job(Printer& printer, const Options& options,
                  const std::vector<std::string>& environment, const JobContact& contact) {
  printer.say(fmt::format("command: {}", quoted(options.command)));
  printer.say(fmt::format("job {}, store at {}", contact.job, contact.store));
  describe_setting(printer, environment, "FASTHOROVOD_START_TIMEOUT",
                   options.start_timeout_s > 0 ? std::to_string(options.start_timeout_s) : "");
  describe_setting(printer, environment, "FASTHOROVOD_NETWORK_INTERFACE",
                   options.network_interface);
  describe_setting(printer, environment, "FASTHOROVOD_FLOW_RATE", options.virtual_rate);
}

void describe_worker(Printer& printer, const Place& place, pid_t pid) {
  printer.say(fmt::format("rank {} on host {}: local {} of {}, cross {} of {}, pid {}", place.rank,
                          place.host, place.local_rank, place.local_size, place.cross_rank,
                          place.cross_size, pid));
}

core::Status start_workers(const Options& options, const std::vector<Place>& places,
                           const std::vector<std::string>& environment, const JobContact& contact,
                           WorkerStarter& starter, Printer& printer, std::vector<CopyFiles>& copies,
                           Supervisor& supervisor) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    core::Result<WorkerProcess> worker =
        starter.start(options.command,
                      worker_environment(environment, rank_variables(places[i], contact, options)));
    if (!worker) {
      return std::move(worker).error().with_context(fmt::format("rank {}", places[i].rank));
    }
    if (options.verbose) describe_worker(printer, places[i], worker->pid);
    supervisor.add(places[i], std::move(*worker), std::move(copies[i]));
  }
  return {};
}

/// Names of this machine, given by different names, become one host.
std::vector<Host> merged(const std::vector<Host>& hosts) {
  Host all{hosts.front().name, 0};
  for (const Host& host : hosts) all.slots += host.slots;
  return {all};
}

}  // namespace

core::Result<std::vector<Place>> plan_places(const Options& options, std::string_view own_name) {
  std::vector<Host> hosts = options.hosts;
  if (hosts.empty()) hosts.push_back({"localhost", options.ranks});
  for (const Host& host : hosts) {
    if (is_local_name(host.name, own_name)) continue;
    return core::Error{core::ErrorCode::kUnavailable,
                       fmt::format("host '{}' is not this machine ({}), and starting ranks on "
                                   "other machines is not in this version",
                                   host.name, own_name)};
  }
  core::Result<std::vector<Place>> places = place_ranks(options.ranks, merged(hosts));
  if (!places || options.virtual_hosts == 0) return places;
  core::Result<std::vector<Host>> posing = virtual_hosts(options.ranks, options.virtual_hosts);
  if (!posing) return std::move(posing).error();
  return place_ranks(options.ranks, *posing);
}

core::Result<int> launch(const Options& options, const std::vector<Place>& places,
                         const std::vector<std::string>& environment) {
  std::vector<pid_t> spared = children_from_before();
  sigset_t signals;
  const OriginalProcess original = prepare_process(signals);
  core::Status allowed = allow_files(options, original.files);
  if (!allowed) return std::move(allowed).error();
  const transport::FileDescriptor signal_events(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signal_events.valid()) return core::system_error("cannot wait for signals", errno);
  core::Result<std::vector<CopyFiles>> copies = open_copies(options);
  if (!copies) return std::move(copies).error();
  core::Result<core::JobId> job = random_job();
  if (!job) return std::move(job).error();
  core::Result<Keeper> keeper = Keeper::start("FASTHOROVOD_JOB=" + hex(*job));
  if (!keeper) return std::move(keeper).error();
  spared.push_back(keeper->pid());

  Meeting meeting;
  core::Status opened = open_meeting(*job, meeting);
  if (!opened) return std::move(opened).error();
  Printer printer;
  core::Result<WorkerStarter> starter = WorkerStarter::create(original);
  if (!starter) return std::move(starter).error();
  auto supervisor = Supervisor::create({.starter = *starter,
                                        .keeper = *keeper,
                                        .printer = printer,
                                        .spared = std::move(spared),
                                        .signals = signal_events.get(),
                                        .command = options.command.front(),
                                        .verbose = options.verbose});
  if (!supervisor) return std::move(supervisor).error();
  if (options.verbose) describe_job(printer, options, environment, meeting.contact);
  core::Status started = start_workers(options, places, environment, meeting.contact, *starter,
                                       printer, *copies, **supervisor);
  if (!started) return std::move(started).error();
  return (*supervisor)->run();
}

}  // namespace fasthorovod::tools
