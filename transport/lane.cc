// A turn of the loop: let in what other threads handed over, ask again for parked chunks (both only
// after a wake), offer work to the flows that have room, report flows that ended, then wait for
// events and serve them. The lane sleeps only after a turn in which nothing moved and nobody called
// wake().
//
// woken_ and idle_ are partners (both sequentially consistent): wake() sets woken_, then looks at
// idle_; the lane sets idle_, then looks at woken_. One of the two sees the other, so no wake is
// lost.
#include "transport/lane.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "transport/closing.h"
#include "transport/flow.h"
#include "transport/lane_counters.h"
#include "transport/local_seat.h"
#include "transport/poller.h"

namespace fasthorovod::transport {
namespace {

constexpr int kForever = -1;
constexpr int kAskAgainMs = 1;  // after work was there that nobody took

struct Peer {
  int rank = 0;
  std::vector<std::unique_ptr<Flow>> flows;
  std::size_t first = 0;  // the flow that is offered the next chunk
  bool served = false;    // got a chunk in this turn, so there may be more
  bool rests = true;      // there was no work at the last look
};

struct NewFlow {
  int peer = 0;
  FileDescriptor socket;
  std::uint32_t number = 0;
};

SeatMaker seats_of(const LaneOptions& options, ChunkWork& work) {
  if (options.seats) return options.seats;
  return local_seats(work, options.rates ? options.rates : std::make_shared<RateBoard>());
}

}  // namespace

class Lane::Impl {
 public:
  Impl(const LaneOptions& options, ChunkWork& work, std::unique_ptr<Poller> poller)
      : options_(options),
        work_(work),
        poller_(std::move(poller)),
        seats_(seats_of(options, work)) {}
  ~Impl() { close(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void add_flow(int peer, FileDescriptor socket, std::uint32_t number);
  void wake();
  void stop();
  bool turn(int timeout_ms);
  void close();

  [[nodiscard]] bool stopped() const { return stopped_.load(); }
  [[nodiscard]] bool called() const { return woken_.load(); }
  [[nodiscard]] LaneStatistics statistics() const;

 private:
  bool let_in();
  Peer& peer_of(int rank);
  bool retry_parked();
  bool offer_work();
  void offer(Peer& peer);
  void start(const Peer& peer, Flow& flow, OutgoingChunk& chunk);
  bool settle();
  void settle(Peer& peer);
  bool keep(Peer& peer, Flow& flow, std::vector<FlowEnd>& ends);
  bool serve(int timeout_ms);

  const LaneOptions options_;
  ChunkWork& work_;
  const std::unique_ptr<Poller> poller_;
  const SeatMaker seats_;
  LaneCounters counters_;
  std::vector<Peer> peers_;
  bool refused_ = false;  // there was work in this turn that take() did not give, or a flow left

  std::atomic<bool> stopped_{false};
  std::atomic<bool> woken_{false};
  std::atomic<bool> idle_{false};
  std::mutex mutex_;                // of new_flows_ only
  std::vector<NewFlow> new_flows_;  // handed over, not let in yet
};

void Lane::Impl::add_flow(int peer, FileDescriptor socket, std::uint32_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped()) return;  // nobody will let it in; it closes here
    new_flows_.push_back({peer, std::move(socket), number});
  }
  wake();
}

void Lane::Impl::wake() {
  // Who finds it set may go: the one who set it rings, and the lane has not looked yet.
  if (woken_.exchange(true)) return;
  if (idle_.load()) poller_->ring();
}

void Lane::Impl::stop() {
  stopped_.store(true);
  wake();
}

bool Lane::Impl::turn(int timeout_ms) {
  counters_.turns.add(1);
  const bool woken = woken_.exchange(false);
  bool moved = woken && let_in();
  if (woken) moved = retry_parked() || moved;
  moved = offer_work() || moved;
  moved = settle() || moved;
  // Woken, it does not sleep before its owner has looked, too, at what the wake may have meant.
  if (moved || woken) {
    timeout_ms = 0;
  } else if (refused_ && (timeout_ms == kForever || timeout_ms > kAskAgainMs)) {
    timeout_ms = kAskAgainMs;
  }
  return serve(timeout_ms) || moved;
}

bool Lane::Impl::let_in() {
  std::vector<NewFlow> added;
  {
    const std::lock_guard lock(mutex_);
    added.swap(new_flows_);
  }
  for (auto& flow : added) {
    Peer& peer = peer_of(flow.peer);
    peer.flows.push_back(std::make_unique<Flow>(flow.peer, std::move(flow.socket),
                                                options_.notsent_lowat, work_, counters_,
                                                seats_(flow.peer, flow.number)));
  }
  return !added.empty();
}

Peer& Lane::Impl::peer_of(int rank) {
  const auto found = std::ranges::find(peers_, rank, &Peer::rank);
  if (found != peers_.end()) return *found;
  return peers_.emplace_back(Peer{.rank = rank, .flows = {}});
}

bool Lane::Impl::retry_parked() {
  bool moved = false;
  for (auto& peer : peers_) {
    for (auto& flow : peer.flows) {
      auto& receiver = flow->receiver();
      if (receiver.state() != FlowReceiver::State::kParked) continue;
      receiver.retry();
      moved = moved || receiver.state() != FlowReceiver::State::kParked;
    }
  }
  return moved;
}

bool Lane::Impl::offer_work() {
  refused_ = false;
  bool moved = false;
  for (auto& peer : peers_) {
    offer(peer);
    moved = moved || peer.served;
  }
  // Who was first is last in the next turn.
  if (peers_.size() > 1) std::rotate(peers_.begin(), peers_.begin() + 1, peers_.end());
  return moved;
}

// One chunk for each flow that has room, as long as there are chunks. Where a flow drains at once
// the network is no limit, and further flows would only cost packets and calls.
void Lane::Impl::offer(Peer& peer) {
  peer.served = false;
  if (peer.flows.empty()) return;
  if (!work_.has_work(peer.rank)) {
    for (auto& flow : peer.flows) flow->forget_refusal();
    if (!std::exchange(peer.rests, true)) peer.flows.front()->rest(core::Clock::now());
    return;
  }
  peer.rests = false;
  const std::size_t count = peer.flows.size();
  const std::size_t first = peer.first % count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = (first + i) % count;
    Flow& flow = *peer.flows[index];
    if (!flow.may_take() || !flow.ready()) continue;
    if (flow.leaves_next_to_others()) {
      refused_ = true;
      continue;
    }
    auto chunk = flow.take();
    if (!chunk) {
      refused_ = refused_ || (!peer.served && work_.has_work(peer.rank));
      return;
    }
    peer.served = true;
    start(peer, flow, *chunk);
    peer.first = index;
    if (flow.drains_at_once()) return;
    peer.first = index + 1;
  }
}

// With it leaves what may leave together with it.
void Lane::Impl::start(const Peer& peer, Flow& flow, OutgoingChunk& chunk) {
  const std::uint64_t joined = flow.joins_up_to();
  const auto start_one = [&](OutgoingChunk& one) {
    if (joined > 0) work_.join_next(peer.rank, one, joined);
    flow.start(one);
  };
  start_one(chunk);
  while (flow.takes_more() && work_.has_work(peer.rank) && !flow.leaves_next_to_others()) {
    auto more = flow.take();
    if (!more) break;
    start_one(*more);
  }
  flow.ask_ahead();
  flow.push();
}

bool Lane::Impl::settle() {
  std::size_t before = 0;
  std::size_t after = 0;
  for (auto& peer : peers_) {
    before += peer.flows.size();
    settle(peer);
    after += peer.flows.size();
  }
  return before != after;
}

// Tells epoll what each flow waits for, and lets go of those that ended.
void Lane::Impl::settle(Peer& peer) {
  std::vector<FlowEnd> ends;
  std::erase_if(peer.flows, [&](auto& flow) { return !keep(peer, *flow, ends); });
  for (const FlowEnd& end : ends) work_.flow_ended(peer.rank, end);
}

bool Lane::Impl::keep(Peer& peer, Flow& flow, std::vector<FlowEnd>& ends) {
  flow.offer_once_more();
  const bool half_closed = flow.receiver().state() == FlowReceiver::State::kEnded;
  auto end = flow.ended(peer.served || (half_closed && work_.has_work(peer.rank)));
  if (!end) {
    const auto interest = flow.interest();
    auto status = poller_->watch(flow.fd(), &flow, flow.watched, interest);
    if (status) {
      flow.watched = interest;
      return true;
    }
    end = FlowEnd{.clean = false, .error = std::move(status).error()};
  }
  if (flow.watched != 0) (void)poller_->watch(flow.fd(), &flow, flow.watched, 0);
  if (options_.shared_sockets) (void)::shutdown(flow.fd(), SHUT_RDWR);
  ends.push_back(std::move(*end));
  return false;
}

bool Lane::Impl::serve(int timeout_ms) {
  idle_.store(true);
  if (woken_.load()) timeout_ms = 0;
  if (timeout_ms != 0) work_.flush();
  const auto events = poller_->wait(timeout_ms);
  idle_.store(false);
  for (const auto& event : events) {
    static_cast<Flow*>(event.data.ptr)->on_events(event.events);
  }
  return !events.empty();
}

void Lane::Impl::close() {
  std::vector<FileDescriptor> sockets;
  for (auto& peer : peers_) {
    for (auto& flow : peer.flows) sockets.push_back(flow->release());
  }
  peers_.clear();
  {
    // Those that came too late to be let in: their peers wait for an end, too.
    const std::lock_guard lock(mutex_);
    for (auto& flow : new_flows_) sockets.push_back(std::move(flow.socket));
    new_flows_.clear();
  }
  close_in_order(std::move(sockets), options_.close_limit);
}

LaneStatistics Lane::Impl::statistics() const {
  return {.bytes_sent = counters_.bytes_sent.value(),
          .bytes_received = counters_.bytes_received.value(),
          .chunks_sent = counters_.chunks_sent.value(),
          .chunks_received = counters_.chunks_received.value(),
          .turns = counters_.turns.value()};
}

core::Result<std::unique_ptr<Lane>> Lane::create(const LaneOptions& options, ChunkWork& work,
                                                 FileDescriptor bell) {
  auto poller = Poller::create(std::move(bell));
  if (!poller) return std::move(poller).error();
  return std::unique_ptr<Lane>(new Lane(std::make_unique<Impl>(options, work, std::move(*poller))));
}

Lane::Lane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Lane::~Lane() = default;

void Lane::add_flow(int peer, FileDescriptor socket, std::uint32_t number) {
  impl_->add_flow(peer, std::move(socket), number);
}

void Lane::wake() { impl_->wake(); }

void Lane::run() {
  while (!impl_->stopped()) impl_->turn(kForever);
  impl_->close();
}

void Lane::stop() { impl_->stop(); }

bool Lane::step(std::chrono::milliseconds timeout) {
  return impl_->turn(
      static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(timeout.count(), 0, 1 << 30)));
}

bool Lane::called() const { return impl_->called(); }

bool Lane::stopped() const { return impl_->stopped(); }

LaneStatistics Lane::statistics() const { return impl_->statistics(); }

}  // namespace fasthorovod::transport
