#include "transport/thread_lane.h"

#include <utility>

namespace fasthorovod::transport {
namespace {

constexpr std::chrono::milliseconds kForever = std::chrono::hours(24);
// How long the thread stays parked when the loop is not taken again.
constexpr std::chrono::milliseconds kRest{1};
// How long to wait for the thread to park: it may be in the middle of a turn.
constexpr std::chrono::milliseconds kParkWait{1};

}  // namespace

core::Result<std::unique_ptr<ThreadLane>> ThreadLane::start(const LaneOptions& options,
                                                            ChunkWork& work) {
  auto lane = Lane::create(options, work);
  if (!lane) return std::move(lane).error();
  return std::unique_ptr<ThreadLane>(new ThreadLane(std::move(*lane)));
}

ThreadLane::ThreadLane(std::unique_ptr<Lane> lane)
    : lane_(std::move(lane)), thread_([this] { run(); }) {}

ThreadLane::~ThreadLane() { stop(); }

void ThreadLane::run() {
  while (!lane_->stopped()) {
    (void)lane_->step(kForever);
    if (owner_.load() == Owner::kAsked) park();
  }
  lane_->run();  // closes the flows
}

void ThreadLane::park() {
  std::unique_lock lock(mutex_);
  if (owner_.load() != Owner::kAsked) return;
  owner_.store(Owner::kNobody);
  resumes_ = false;  // who asked makes the turn that its call means
  changed_.notify_all();
  while (true) {
    const unsigned takes = takes_;
    changed_.wait_for(lock, kRest, [this] { return owner_.load() == Owner::kNobody && resumes_; });
    if (owner_.load() == Owner::kCaller) continue;
    if (resumes_ || lane_->stopped() || takes == takes_) break;
  }
  owner_.store(Owner::kThread);
}

void ThreadLane::add_flow(int peer, FileDescriptor socket) {
  lane_->add_flow(peer, std::move(socket));
  unpark();
}

void ThreadLane::wake() {
  lane_->wake();
  unpark();
}

// The lane was called before it looks at the owner; who gives the loop back stores the owner before
// it looks at that. One of them sees the other.
void ThreadLane::unpark() {
  if (owner_.load() != Owner::kNobody) return;
  const std::lock_guard lock(mutex_);
  resumes_ = true;
  changed_.notify_all();
}

bool ThreadLane::try_take() {
  std::unique_lock lock(mutex_);
  const auto is_free = [this] { return owner_.load() == Owner::kNobody; };
  if (lane_->stopped() || (resumes_ && is_free())) return false;
  if (owner_.load() == Owner::kThread) {
    owner_.store(Owner::kAsked);
    lane_->wake();
    changed_.wait_for(lock, kParkWait, is_free);
    if (owner_.load() == Owner::kAsked) owner_.store(Owner::kThread);
  }
  if (!is_free()) return false;
  owner_.store(Owner::kCaller);
  ++takes_;
  return true;
}

bool ThreadLane::step(std::chrono::milliseconds timeout) { return lane_->step(timeout); }

bool ThreadLane::stopping() const { return lane_->stopped(); }

void ThreadLane::give_back(bool at_once) {
  if (!at_once && lane_->called()) (void)lane_->step(std::chrono::milliseconds(0));
  const std::lock_guard lock(mutex_);
  owner_.store(Owner::kNobody);
  resumes_ = at_once || lane_->called() || lane_->stopped();
  if (resumes_) changed_.notify_all();
}

void ThreadLane::begin_stop() {
  lane_->stop();
  unpark();
}

void ThreadLane::stop() {
  begin_stop();
  if (thread_.joinable()) thread_.join();
}

LaneStatistics ThreadLane::statistics() const { return lane_->statistics(); }

}  // namespace fasthorovod::transport
