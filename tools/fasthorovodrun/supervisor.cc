#include "tools/fasthorovodrun/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace fasthorovod::tools {
namespace {

constexpr int kSignalBase = 128;
constexpr int kTickMs = 20;
// How long a process that is being taken apart is waited for.
constexpr int kDyingWaitMs = 200;
// Counted from the start of a stop: one second more than processes may take.
constexpr std::chrono::seconds kFlushLimit{8};

}  // namespace

Printer::Printer() : output_(STDOUT_FILENO) {
  if (!same_target(STDOUT_FILENO, STDERR_FILENO)) errors_.emplace(STDERR_FILENO);
}

std::vector<Sink*> Printer::sinks() {
  std::vector<Sink*> result{&output_};
  if (errors_) result.push_back(&*errors_);
  return result;
}

void Printer::say(std::string_view sentence) {
  standard_error().buffer() += fmt::format("fasthorovodrun: {}\n", sentence);
}

core::Result<std::unique_ptr<Supervisor>> Supervisor::create(Parts parts) {
  core::Result<Poller> poller = Poller::create();
  if (!poller) return std::move(poller).error();
  const int signals = parts.signals;
  std::unique_ptr<Supervisor> made(new Supervisor(std::move(parts), std::move(*poller)));
  if (!made->poller_.watch(signals, {Source::kSignal, 0})) {
    return core::system_error("cannot wait for signals", errno);
  }
  return made;
}

Supervisor::Supervisor(Parts parts, Poller poller)
    : parts_(std::move(parts)),
      poller_(std::move(poller)),
      stopper_(parts_.spared),
      sink_watched_(parts_.printer.sinks().size(), false) {}

void Supervisor::add(const Place& place, WorkerProcess process, CopyFiles copies) {
  const std::size_t index = members_.size();
  parts_.keeper.add(process.pid);
  members_.push_back({place, process.pid, std::move(process.exit_event)});
  if (members_.back().exit_event.valid()) {
    poller_.watch(members_.back().exit_event.get(), {Source::kExit, index});
  }
  streams_.push_back(std::make_unique<Stream>(Stream{
      WorkerOutput(std::move(process.standard_output), fmt::format("[{}]<stdout>:", place.rank),
                   std::move(copies.standard_output), parts_.printer.standard_output())}));
  streams_.push_back(std::make_unique<Stream>(Stream{
      WorkerOutput(std::move(process.standard_error), fmt::format("[{}]<stderr>:", place.rank),
                   std::move(copies.standard_error), parts_.printer.standard_error())}));
}

int Supervisor::run() {
  parts_.starter.open_gate(static_cast<int>(members_.size()));
  while (!finished()) {
    flush();
    update_watches();
    for (const Event& event : poller_.wait(timeout_ms())) handle(event);
    reap_others();
    advance();
  }
  return code_.value_or(0);
}

void Supervisor::handle(const Event& event) {
  switch (event.source) {
    case Source::kSignal:
      handle_signals();
      break;
    case Source::kExit:
      handle_exit(members_[event.index]);
      break;
    case Source::kSink:
      break;  // every round flushes
    case Source::kOutput:
      if (streams_[event.index]->output.open()) streams_[event.index]->output.read_some();
      break;
  }
}

void Supervisor::handle_signals() {
  signalfd_siginfo info{};
  while (read(parts_.signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) handle_signal(static_cast<int>(info.ssi_signo));
  }
}

void Supervisor::handle_signal(int signal) {
  if (!stopper_.active()) {
    parts_.printer.say(fmt::format("got {}; stopping all ranks", signal_name(signal)));
    stop(kSignalBase + signal);
    return;
  }
  if (!code_) code_ = kSignalBase + signal;
  abandoned_ = stopper_.over();  // nothing is left but output nobody reads
  stopper_.kill_now(Clock::now());
}

void Supervisor::handle_exit(Member& member) {
  Ending ending{.pid = member.pid};
  rusage usage{};
  if (!member.alive || wait4(member.pid, &ending.status, WNOHANG, &usage) != member.pid) return;
  ending.peak_kilobytes = usage.ru_maxrss;
  if (WIFEXITED(ending.status) && exit_code(ending) != 0 && !stopper_.active()) handle_killed();
  ended(member, ending);
}

// A worker that a signal kills closes its connections a moment before it counts as ended, and those
// at their other ends may see that and fail in between. They are not the cause.
void Supervisor::handle_killed() {
  for (const Process& process : all_processes()) {
    Member* member = process.exiting ? member_of(process.pid) : nullptr;
    if (member == nullptr || !member->alive || !member->exit_event.valid()) continue;
    pollfd end{.fd = member->exit_event.get(), .events = POLLIN, .revents = 0};
    siginfo_t info{};
    const auto pid = static_cast<id_t>(process.pid);
    if (poll(&end, 1, kDyingWaitMs) != 1 ||
        waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
      continue;
    }
    if (info.si_code != CLD_EXITED) return handle_exit(*member);
  }
}

void Supervisor::ended(Member& member, Ending ending) {
  member.alive = false;
  if (member.exit_event.valid()) poller_.forget(member.exit_event.get());
  member.exit_event = transport::FileDescriptor();
  const std::vector<Process> left = all_processes();
  const bool session_lives = std::ranges::any_of(
      left, [&](const Process& process) { return process.session == member.pid; });
  if (!session_lives) parts_.keeper.remove(member.pid);

  ending.exec_failure = failure_of(member.pid);
  const int code = exit_code(ending);
  const bool first_failure = code != 0 && !stopper_.active();
  if (!first_failure && !parts_.verbose) return;
  read_rest(static_cast<std::size_t>(&member - members_.data()));
  std::string sentence = describe(member.place, ending, parts_.command);
  if (first_failure && alive() > 0) sentence += "; stopping the other ranks";
  parts_.printer.say(sentence);
  if (first_failure) stop(code);
}

void Supervisor::read_rest(std::size_t member) {
  // What a worker said before it ended comes before what we say of it. A pipe holds 64 KiB unless
  // it was enlarged.
  constexpr int kReads = 4;
  for (const std::size_t stream : {2 * member, 2 * member + 1}) {
    WorkerOutput& output = streams_[stream]->output;
    for (int i = 0; i < kReads && output.open() && output.read_some(); ++i) {
    }
  }
}

void Supervisor::reap_others() {
  // Workers with an exit event are left to it, which keeps the order in which they ended.
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    Member* member = member_of(info.si_pid);
    if (member != nullptr && member->alive) {
      if (member->exit_event.valid()) return;
      handle_exit(*member);
    } else {
      waitpid(info.si_pid, nullptr, WNOHANG);
    }
  }
}

void Supervisor::stop(int code) {
  if (!code_) code_ = code;
  flush_deadline_ = Clock::now() + kFlushLimit;
  stopper_.begin(Clock::now());
}

void Supervisor::advance() {
  if (alive() == 0) stopper_.begin(Clock::now());  // children that outlived their ranks
  if (!stopper_.active()) return;
  if (!stopper_.over()) {
    stopper_.tick(Clock::now());
    if (stopper_.over()) report_survivors();
  }
  if (stopper_.over()) finish_outputs();
}

void Supervisor::report_survivors() {
  for (const Process& process : stopper_.survivors()) {
    parts_.printer.say(
        fmt::format("process {} could not be killed and is left alone", process.pid));
    if (code_.value_or(0) == 0) code_ = kSignalBase + SIGKILL;
  }
}

void Supervisor::finish_outputs() {
  outputs_finished_ = true;
  for (const std::unique_ptr<Stream>& stream : streams_) {
    WorkerOutput& output = stream->output;
    while (output.open() && !output.sink().full() && output.read_some()) {
    }
    if (!output.open()) continue;
    if (output.sink().full()) {
      outputs_finished_ = false;
    } else {
      if (stream->watched) poller_.forget(output.fd());
      stream->watched = false;
      output.finish();
    }
  }
}

void Supervisor::flush() {
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (const auto error = stream->output.take_copy_error()) parts_.printer.say(error->message);
  }
  for (Sink* sink : parts_.printer.sinks()) flush_one(*sink);
}

void Supervisor::flush_one(Sink& sink) {
  sink.flush();
  const int error = sink.take_error();
  if (error == 0 || &sink != &parts_.printer.standard_output()) return;
  if (error != EPIPE) {
    parts_.printer.say(core::system_error("standard output is lost from here on", error).message);
  } else if (!stopper_.active()) {
    parts_.printer.say("nobody reads standard output any more; stopping all ranks");
    stop(kSignalBase + SIGPIPE);
  }
}

void Supervisor::update_watches() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = *streams_[i];
    const bool wanted = stream.output.open() && !stream.output.sink().full();
    if (!stream.output.open()) stream.watched = false;  // closing a descriptor ends its watch
    if (wanted == stream.watched) continue;
    if (wanted) {
      stream.watched = poller_.watch(stream.output.fd(), {Source::kOutput, i});
    } else {
      poller_.forget(stream.output.fd());
      stream.watched = false;
    }
  }
  const std::vector<Sink*> sinks = parts_.printer.sinks();
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const bool wanted = !sinks[i]->empty();
    if (wanted == sink_watched_[i]) continue;
    if (!wanted) poller_.forget(sinks[i]->fd());
    sink_watched_[i] = wanted && poller_.watch(sinks[i]->fd(), {Source::kSink, i});
  }
}

std::optional<ExecFailure> Supervisor::failure_of(pid_t pid) {
  while (const std::optional<ExecFailure> failure = parts_.starter.next_failure()) {
    failures_.push_back(*failure);
  }
  const auto found = std::ranges::find(failures_, pid, &ExecFailure::pid);
  return found == failures_.end() ? std::nullopt : std::optional(*found);
}

Supervisor::Member* Supervisor::member_of(pid_t pid) {
  const auto found = std::ranges::find(members_, pid, &Member::pid);
  return found == members_.end() ? nullptr : &*found;
}

std::size_t Supervisor::alive() const {
  return static_cast<std::size_t>(std::ranges::count(members_, true, &Member::alive));
}

int Supervisor::timeout_ms() const { return stopper_.active() ? kTickMs : -1; }

bool Supervisor::finished() {
  if (abandoned_) return true;
  if (!outputs_finished_) return false;
  flush();
  const bool flushed =
      std::ranges::all_of(parts_.printer.sinks(), [](const Sink* sink) { return sink->empty(); });
  return flushed || (flush_deadline_ && Clock::now() >= *flush_deadline_);
}

}  // namespace fasthorovod::tools
