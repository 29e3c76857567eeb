#include "transport/mpi_lane.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

namespace fasthorovod::transport {
namespace {

using namespace std::chrono_literals;

constexpr auto kAwake = 10us;         // after anything moved
constexpr auto kLongestRest = 1ms;    // while nothing is expected
constexpr auto kLongestPause = 50us;  // while something is
constexpr auto kPauseAtTheEnd = 50us;
constexpr int kBlocksAtOnce = 64;  // that are looked for before flows get their turn

}  // namespace

MpiLane::MpiLane(const MpiLaneOptions& options, MpiBlocks& mpi, ChunkWork& work, Keep keep)
    : options_(options),
      mpi_(mpi),
      work_(work),
      keep_(std::move(keep)),
      home_{mpi_, work_, counters_, pool_, options_.mark},
      thread_([this] { run(); }) {}

MpiLane::~MpiLane() { stop(); }

void MpiLane::add_flow(int /*peer*/, FileDescriptor socket) { socket = FileDescriptor(); }

void MpiLane::add_peer(int peer) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(peer);
  }
  wake();
}

void MpiLane::wake() {
  if (woken_.exchange(true)) return;
  if (!idle_.load()) return;
  const std::lock_guard lock(mutex_);
  bell_.notify_one();
}

void MpiLane::begin_stop() {
  stopped_.store(true);
  wake();
}

void MpiLane::stop() {
  begin_stop();
  if (thread_.joinable()) thread_.join();
}

LaneStatistics MpiLane::statistics() const {
  return {.bytes_sent = counters_.bytes_sent.value(),
          .bytes_received = counters_.bytes_received.value(),
          .chunks_sent = counters_.chunks_sent.value(),
          .chunks_received = counters_.chunks_received.value(),
          .turns = counters_.turns.value()};
}

void MpiLane::run() {
  // Sleeps as short as they are meant to be; the system would add 50 us.
  ::prctl(PR_SET_TIMERSLACK, 1000);
  await_first_wake();
  while (!stopped_.load()) {
    if (turn()) {
      last_moved_ = core::Clock::now();
    } else {
      rest();
    }
  }
  close();
}

// Other ranks may have sent already, before this one is ready for that.
void MpiLane::await_first_wake() {
  std::unique_lock lock(mutex_);
  idle_.store(true);
  bell_.wait(lock, [this] { return woken_.load(); });
  idle_.store(false);
}

bool MpiLane::turn() {
  counters_.turns.add(1);
  const bool woken = woken_.exchange(false);
  if (woken) let_in();
  bool moved = collect() || woken;
  refused_ = false;
  under_way_ = false;
  for (auto& [peer, flow] : flows_) moved = serve(*flow, woken) || moved;
  return moved;
}

MpiFlow& MpiLane::flow_of(int peer) {
  auto& flow = flows_[peer];
  if (flow == nullptr) flow = std::make_unique<MpiFlow>(peer, home_);
  return *flow;
}

void MpiLane::let_in() {
  std::vector<int> added;
  {
    const std::lock_guard lock(mutex_);
    added.swap(added_);
  }
  for (const int peer : added) (void)flow_of(peer);
}

// An error of MPI that concerns no rank comes back when a flow moves.
bool MpiLane::collect() {
  bool moved = false;
  for (int i = 0; i < kBlocksAtOnce; ++i) {
    auto block = mpi_.next_block();
    if (!block || *block == nullptr) break;
    const int peer = (*block)->peer();
    flow_of(peer).add(*std::move(block));
    moved = true;
  }
  return moved;
}

bool MpiLane::serve(MpiFlow& flow, bool woken) {
  bool moved = woken && flow.retry();
  moved = flow.receive() || moved;
  moved = flow.send() || moved;
  under_way_ = flow.reap() || under_way_;
  refused_ = refused_ || flow.was_refused();
  if (auto end = flow.take_end()) work_.flow_ended(flow.peer(), *end);
  return moved;
}

void MpiLane::rest() {
  const core::Duration quiet = core::Clock::now() - last_moved_;
  if (quiet < kAwake) return;
  const bool expects = under_way_ || refused_ || options_.busy();
  const core::Duration longest = expects ? kLongestPause : kLongestRest;
  std::unique_lock lock(mutex_);
  idle_.store(true);
  bell_.wait_for(lock, std::min(quiet / 2, longest), [this] { return woken_.load(); });
  idle_.store(false);
}

// What was sent is to arrive, which needs this side's help, and the others are to know that nothing
// follows. A rank that has said the same needs neither.
void MpiLane::close() {
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer == options_.rank) continue;
    MpiFlow& flow = flow_of(peer);
    flow.discard();
    flow.say_end(MpiBlockKind::kEnd);
  }
  const core::TimePoint deadline = core::Clock::now() + options_.close_limit;
  while (is_closing() && core::Clock::now() < deadline) std::this_thread::sleep_for(kPauseAtTheEnd);
  std::vector<MpiBlockOnItsWay> left;
  for (auto& [peer, flow] : flows_) flow->release(left);
  keep_(std::move(left));
}

bool MpiLane::is_closing() {
  (void)collect();
  bool closing = false;
  for (auto& [peer, flow] : flows_) {
    (void)flow->receive();
    closing = (flow->reap() && !flow->peer_is_done()) || closing;
  }
  return closing;
}

}  // namespace fasthorovod::transport
