// Watches the workers of a job from the first to the last: passes on what they print, notices how
// they end, and brings all of them down when one fails or somebody asks.
//
// One thread, one loop. The first worker that fails decides the exit code; one that a signal kills
// comes before those that fail because its connections end. Then everything gets SIGTERM at once,
// SIGKILL after five seconds, and the loop ends two seconds later at the latest.
// Thread: owner.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovodrun/exit_report.h"
#include "tools/fasthorovodrun/keeper.h"
#include "tools/fasthorovodrun/poller.h"
#include "tools/fasthorovodrun/sink.h"
#include "tools/fasthorovodrun/stopper.h"
#include "tools/fasthorovodrun/worker.h"
#include "tools/fasthorovodrun/worker_output.h"

namespace fasthorovod::tools {

/// Where the launcher itself prints. One sink serves both when they lead to the same place, so that
/// lines stay whole.
class Printer final {
 public:
  Printer();

  [[nodiscard]] Sink& standard_output() { return output_; }
  [[nodiscard]] Sink& standard_error() { return errors_ ? *errors_ : output_; }
  [[nodiscard]] std::vector<Sink*> sinks();
  /// One line of the launcher's own, on standard error.
  void say(std::string_view sentence);

 private:
  Sink output_;
  std::optional<Sink> errors_;
};

class Supervisor final {
 public:
  struct Parts {
    WorkerStarter& starter;
    Keeper& keeper;
    Printer& printer;
    std::vector<pid_t> spared;  // processes below us that are none of the job's
    int signals = -1;           // a signalfd
    std::string command;        // its name, for messages
    bool verbose = false;
  };

  static core::Result<std::unique_ptr<Supervisor>> create(Parts parts);

  /// A worker that waits at the gate.
  void add(const Place& place, WorkerProcess process, CopyFiles copies);
  /// Opens the gate and stays until everything is over. Returns the launcher's exit code.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Member {
    Place place;
    pid_t pid;
    transport::FileDescriptor exit_event;
    bool alive = true;
  };
  struct Stream {
    WorkerOutput output;
    bool watched = false;
  };

  Supervisor(Parts parts, Poller poller);

  void handle(const Event& event);
  void handle_signals();
  void handle_signal(int signal);
  void handle_exit(Member& member);
  void handle_killed();
  void ended(Member& member, Ending ending);
  void reap_others();
  void stop(int code);
  void advance();
  void finish_outputs();
  void flush();
  void flush_one(Sink& sink);
  void update_watches();
  void report_survivors();

  [[nodiscard]] std::optional<ExecFailure> failure_of(pid_t pid);
  void read_rest(std::size_t member);
  [[nodiscard]] Member* member_of(pid_t pid);
  [[nodiscard]] std::size_t alive() const;
  [[nodiscard]] int timeout_ms() const;
  [[nodiscard]] bool finished();

  Parts parts_;
  Poller poller_;
  Stopper stopper_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Stream>> streams_;  // two a member: output, errors
  std::vector<ExecFailure> failures_;
  std::vector<bool> sink_watched_;
  std::optional<int> code_;
  std::optional<Clock::time_point>
      flush_deadline_;  // set when a stop must not wait for a slow reader
  bool outputs_finished_ = false;
  bool abandoned_ = false;
};

}  // namespace fasthorovod::tools
