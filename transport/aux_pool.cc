#include "transport/aux_pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "transport/aux_program.h"
#include "transport/poller.h"

namespace fasthorovod::transport {
namespace {

constexpr std::chrono::milliseconds kHelloLimit{10'000};
constexpr std::chrono::milliseconds kKillLimit{2'000};
constexpr int kForever = -1;

}  // namespace

// The thread that starts auxiliaries and waits for their ends.
class AuxPool::Keeper final {
 public:
  static core::Result<std::unique_ptr<Keeper>> create() {
    auto poller = Poller::create();
    if (!poller) return std::move(poller).error();
    return std::unique_ptr<Keeper>(new Keeper(std::move(*poller)));
  }

  core::Result<AuxProcessPtr> start(const std::string& program) {
    std::promise<core::Result<AuxProcessPtr>> promise;
    auto result = promise.get_future();
    {
      const std::lock_guard lock(mutex_);
      orders_.push_back({program, std::move(promise)});
    }
    poller_->ring();
    return result.get();
  }

 private:
  struct Order {
    std::string program;
    std::promise<core::Result<AuxProcessPtr>> promise;
  };

  explicit Keeper(std::unique_ptr<Poller> poller) : poller_(std::move(poller)) {
    // Signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { keep(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void keep() {
    ::pthread_setname_np(::pthread_self(), "fasthorovod-kpr");
    while (true) {
      for (Order& order : take_orders()) order.promise.set_value(run(order.program));
      for (const epoll_event& event : poller_->wait(kForever)) {
        end_of(static_cast<AuxProcess*>(event.data.ptr));
      }
    }
  }

  std::vector<Order> take_orders() {
    const std::lock_guard lock(mutex_);
    return std::exchange(orders_, {});
  }

  core::Result<AuxProcessPtr> run(const std::string& program) {
    auto process = AuxProcess::start(program);
    if (!process) return process;
    AuxProcess* raw = process->get();
    core::Status watched = poller_->watch(raw->pidfd(), raw, 0, EPOLLIN);
    if (!watched) {
      raw->kill();
      raw->reap();
      return std::move(watched).error();
    }
    running_.emplace(raw, *process);
    return process;
  }

  void end_of(AuxProcess* process) {
    (void)poller_->watch(process->pidfd(), process, EPOLLIN, 0);
    process->reap();
    running_.erase(process);
  }

  const std::unique_ptr<Poller> poller_;
  std::map<AuxProcess*, AuxProcessPtr> running_;
  std::mutex mutex_;
  std::vector<Order> orders_;
};

AuxPool::AuxPool() = default;

// Never destroyed: the keeper outlives everything. In a forked child there is no keeper, and the
// processes are the parent's.
AuxPool& AuxPool::of_process() {
  struct Owned {
    const pid_t owner = ::getpid();
    AuxPool pool;
  };
  static std::mutex mutex;
  static Owned* current = nullptr;
  const std::lock_guard lock(mutex);
  if (current == nullptr || current->owner != ::getpid()) current = new Owned;
  return current->pool;
}

core::Result<std::vector<AuxProcessPtr>> AuxPool::lease(int count) {
  std::vector<AuxProcessPtr> leased;
  std::vector<AuxProcessPtr> fresh;
  const auto give_up = [&](core::Error error) {
    for (auto& process : leased) give_back(std::move(process));
    return error;
  };
  while (std::cmp_less(leased.size(), count)) {
    AuxProcessPtr process = take_idle();
    if (!process) break;
    leased.push_back(std::move(process));
  }
  const std::size_t missing = static_cast<std::size_t>(count) - leased.size();
  if (missing == 0) return leased;
  auto program = find_aux_program();
  if (!program) return give_up(std::move(program).error());
  // All start at once; then each is waited for.
  core::Status status;
  for (std::size_t i = 0; i < missing && status; ++i) {
    auto process = start(*program);
    if (process) {
      fresh.push_back(std::move(*process));
    } else {
      status = std::move(process).error();
    }
  }
  for (const auto& process : fresh) {
    if (status) status = process->await_hello(*program, kHelloLimit);
  }
  if (!status) {
    for (const auto& process : fresh) process->kill();
    for (const auto& process : fresh) process->await_end(kKillLimit);
    return give_up(std::move(status).error());
  }
  std::ranges::move(fresh, std::back_inserter(leased));
  return leased;
}

void AuxPool::give_back(AuxProcessPtr process) {
  if (process->ended()) return;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(process));
}

core::Result<AuxProcessPtr> AuxPool::start(const std::string& program) {
  {
    const std::lock_guard lock(mutex_);
    if (!keeper_) {
      auto keeper = Keeper::create();
      if (!keeper) return std::move(keeper).error();
      keeper_ = std::move(*keeper);
    }
  }
  return keeper_->start(program);
}

AuxProcessPtr AuxPool::take_idle() {
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) {
    AuxProcessPtr process = std::move(idle_.back());
    idle_.pop_back();
    if (!process->ended()) return process;
  }
  return nullptr;
}

}  // namespace fasthorovod::transport
