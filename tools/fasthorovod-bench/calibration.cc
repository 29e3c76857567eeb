#include "tools/fasthorovod-bench/calibration.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "ops/reduce.h"
#include "tools/fasthorovod-bench/loopback_pair.h"
#include "tools/fasthorovod-bench/neighbour.h"
#include "transport/chunk_work.h"
#include "transport/lane.h"
#include "transport/own_processors.h"

namespace fasthorovod::tools {
namespace {

using core::ByteCosts;
using core::Clock;
using core::TimePoint;
using transport::FileDescriptor;

constexpr std::size_t kMemory = std::size_t{32} << 20;
constexpr std::size_t kLarge = std::size_t{128} << 10;  // what a lane receives at once
constexpr std::size_t kSmall = std::size_t{4} << 10;
constexpr std::size_t kFarConnections = 32;  // 4 MiB on their way, more than a core's own cache
constexpr int kPatienceMs = 1000;
constexpr int kRounds = 7;
constexpr std::chrono::milliseconds kRound{20};
constexpr std::chrono::milliseconds kSharedRound{60};  // many slices of the scheduler's
constexpr std::chrono::milliseconds kSharing{400};
constexpr int kHops = 2000;

double ns(core::Duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Memory that is walked through, so that what is next is in no cache.
class Walk {
 public:
  std::byte* next(std::size_t bytes) {
    at_ = at_ + 2 * bytes > kMemory ? 0 : at_ + bytes;
    return memory_.data() + at_;
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(kMemory, std::byte{1});
  std::size_t at_ = 0;
};

/// Nanoseconds of one call of `function`, the median of several rounds.
double time_of(const std::function<void()>& function, core::Duration length = kRound) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const TimePoint start = Clock::now();
    TimePoint now = start;
    int calls = 0;
    while (now - start < length) {
      function();
      ++calls;
      now = Clock::now();
    }
    rounds.push_back(ns(now - start) / calls);
  }
  return median(std::move(rounds));
}

struct Transfer {
  double send = 0;     // nanoseconds a call
  double receive = 0;  // the same
};

/// Connections on which as many pieces are on their way at a time.
class Wire {
 public:
  static core::Result<Wire> open(std::size_t connections) {
    Wire wire;
    for (std::size_t count = 0; count < connections; ++count) {
      auto sockets = loopback_pair();
      if (!sockets) return std::move(sockets).error();
      wire.ends_.push_back(
          {std::move(sockets->first), std::move(sockets->second), std::vector<std::byte>(kLarge)});
    }
    return wire;
  }

  /// Of pieces of that size. `scratch`: each connection receives into the same place again.
  core::Result<Transfer> time(std::size_t bytes, bool scratch, core::Duration length) {
    std::vector<double> sends;
    std::vector<double> receives;
    for (int round = 0; round < kRounds; ++round) {
      core::Duration sending{};
      core::Duration receiving{};
      int rounds = 0;
      for (const TimePoint start = Clock::now(); Clock::now() - start < length; ++rounds) {
        const TimePoint first = Clock::now();
        for (const End& end : ends_) {
          if (!write(end, bytes)) return broken();
        }
        const TimePoint second = Clock::now();
        for (End& end : ends_) {
          if (!read(end, scratch ? end.scratch.data() : to_.next(bytes), bytes)) return broken();
        }
        sending += second - first;
        receiving += Clock::now() - second;
      }
      const double calls = rounds * static_cast<double>(ends_.size());
      sends.push_back(ns(sending) / calls);
      receives.push_back(ns(receiving) / calls);
    }
    return Transfer{median(std::move(sends)), median(std::move(receives))};
  }

 private:
  struct End {
    FileDescriptor near;
    FileDescriptor far;
    std::vector<std::byte> scratch;
  };

  static core::Error broken() {
    return {core::ErrorCode::kUnavailable, "a connection inside this host does not carry"};
  }

  bool write(const End& end, std::size_t bytes) {
    const std::byte* const from = from_.next(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t count = ::send(end.near.get(), from + done, bytes - done, MSG_NOSIGNAL);
      if (count <= 0) return false;
      done += static_cast<std::size_t>(count);
    }
    return true;
  }

  // What was sent on loopback is there at once, or after a moment of the kernel's.
  static bool read(const End& end, std::byte* into, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t count = ::recv(end.far.get(), into + done, bytes - done, 0);
      if (count > 0) {
        done += static_cast<std::size_t>(count);
        continue;
      }
      pollfd watched{.fd = end.far.get(), .events = POLLIN, .revents = 0};
      if (count == 0 || errno != EAGAIN || ::poll(&watched, 1, kPatienceMs) != 1) return false;
    }
    return true;
  }

  std::vector<End> ends_;
  Walk from_;
  Walk to_;
};

/// Cost a byte and a call, from calls of two sizes.
std::pair<double, double> line_through(double small, double large) {
  const double byte = std::max(0.0, (large - small) / static_cast<double>(kLarge - kSmall));
  return {byte, std::max(0.0, small - byte * static_cast<double>(kSmall))};
}

double add_cost(std::size_t scratches, core::Duration length) {
  Walk to;
  const std::vector<std::byte> scratch(scratches * kLarge, std::byte{0});
  std::size_t at = 0;
  return time_of(
             [&] {
               at = (at + kLarge) % scratch.size();
               ops::reduce_into(to.next(kLarge), scratch.data() + at, kLarge / sizeof(float),
                                core::DataType::kFloat32, core::Reduction::kSum);
             },
             length) /
         static_cast<double>(kLarge);
}

double copy_cost(core::Duration length) {
  Walk from;
  Walk to;
  return time_of([&] { std::memcpy(to.next(kLarge), from.next(kLarge), kLarge); }, length) /
         static_cast<double>(kLarge);
}

core::Result<ByteCosts> byte_costs(std::size_t connections, core::Duration length) {
  auto wire = Wire::open(connections);
  if (!wire) return std::move(wire).error();
  const auto small = wire->time(kSmall, false, length);
  const auto large = wire->time(kLarge, false, length);
  const auto scratch = wire->time(kLarge, true, length);
  if (!small || !large || !scratch) {
    return (!small ? small : !large ? large : scratch).error();
  }
  ByteCosts costs;
  std::tie(costs.send, costs.send_call) = line_through(small->send, large->send);
  std::tie(costs.receive, costs.receive_call) = line_through(small->receive, large->receive);
  costs.receive_scratch =
      std::max(0.0, scratch->receive - costs.receive_call) / static_cast<double>(kLarge);
  costs.add = add_cost(connections, length);
  costs.copy = copy_cost(length);
  return costs;
}

core::Result<core::QueueCosts> queue_costs(core::Duration length) {
  auto close = byte_costs(1, length);
  if (!close) return std::move(close).error();
  auto far = byte_costs(kFarConnections, length);
  if (!far) return std::move(far).error();
  return core::QueueCosts{*close, *far};
}

/// Has nothing to send.
class Nothing final : public transport::ChunkWork {
 public:
  std::optional<transport::OutgoingChunk> take(int, transport::TakeOrder) override { return {}; }
  void join_next(int, transport::OutgoingChunk&, std::uint64_t) override {}
  [[nodiscard]] bool has_work(int /*peer*/) const override { return false; }
  [[nodiscard]] transport::Backlog backlog(int /*peer*/) const override { return {}; }
  void sent(const transport::ChunkTicket& /*ticket*/) override {}
  core::Result<transport::Arrival> arrive(int /*peer*/,
                                          const transport::FrameHeader& /*header*/) override {
    return transport::Arrival{};
  }
  void absorb(const transport::ChunkTicket& /*ticket*/, std::uint64_t /*offset*/,
              std::span<const std::byte> /*piece*/) override {}
  void received(const transport::ChunkTicket& /*ticket*/) override {}
  void flow_ended(int /*peer*/, const transport::FlowEnd& /*end*/) override {}
};

core::Result<double> turn_cost() {
  Nothing nothing;
  auto lane = transport::Lane::create({}, nothing);
  if (!lane) return std::move(lane).error();
  return time_of([&] {
    (*lane)->wake();
    (*lane)->step(std::chrono::milliseconds(0));
  });
}

core::Result<double> look_cost() {
  const auto sockets = loopback_pair();
  if (!sockets) return sockets.error();
  std::byte byte{};
  return time_of([&] { (void)::recv(sockets->first.get(), &byte, 1, 0); });
}

/// Half of a round trip between two threads that sleep on bells.
core::Result<double> hop_cost(int own, int other) {
  const FileDescriptor there(::eventfd(0, EFD_CLOEXEC));
  const FileDescriptor back(::eventfd(0, EFD_CLOEXEC));
  if (!there.valid() || !back.valid()) return core::system_error("making a bell", errno);
  const auto ring = [](const FileDescriptor& bell) { (void)::eventfd_write(bell.get(), 1); };
  const auto hear = [](const FileDescriptor& bell) {
    eventfd_t ignored = 0;
    (void)::eventfd_read(bell.get(), &ignored);
  };
  std::thread echo([&] {
    (void)transport::bind_thread({other});
    for (int hop = 0; hop < kHops; ++hop) {
      hear(there);
      ring(back);
    }
  });
  (void)transport::bind_thread({own});
  const TimePoint start = Clock::now();
  for (int hop = 0; hop < kHops; ++hop) {
    ring(there);
    hear(back);
  }
  const double all = ns(Clock::now() - start);
  echo.join();
  return all / kHops / 2;
}

/// What the calling thread gets of its processor beside a busy one.
double share_beside(int processor) {
  const Neighbour busy(Neighbour::Kind::kBusy, processor);
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  const double before = used();
  const TimePoint start = Clock::now();
  while (Clock::now() - start < kSharing) {
  }
  return (used() - before) / ns(Clock::now() - start);
}

}  // namespace

core::Result<core::LaneCosts> calibrate(const CalibrationPlace& place) {
  if (const int code = transport::bind_thread({place.own}); code != 0) {
    return core::system_error("running on one processor", code);
  }
  core::LaneCosts costs;
  costs.cache = static_cast<double>(std::max(::sysconf(_SC_LEVEL2_CACHE_SIZE), 0L));
  auto alone = queue_costs(kRound);
  if (!alone) return std::move(alone).error();
  costs.alone = *alone;
  auto turn = turn_cost();
  if (!turn) return std::move(turn).error();
  costs.turn = *turn;
  auto look = look_cost();
  if (!look) return std::move(look).error();
  costs.look = *look;
  if (place.other) {
    auto hop = hop_cost(place.own, *place.other);
    if (!hop) return std::move(hop).error();
    costs.hop = *hop;
  }
  costs.share = share_beside(place.own);
  const auto beside = [](Neighbour::Kind kind, int processor) {
    const Neighbour neighbour(kind, processor);
    return queue_costs(kind == Neighbour::Kind::kBusy ? kSharedRound : kRound);
  };
  auto busy = beside(Neighbour::Kind::kBusy, place.own);
  if (!busy) return std::move(busy).error();
  costs.busy = *busy;
  if (place.sharing) {
    auto hungry = beside(Neighbour::Kind::kHungry, *place.sharing);
    if (!hungry) return std::move(hungry).error();
    costs.hungry = *hungry;
  }
  return costs;
}

}  // namespace fasthorovod::tools
