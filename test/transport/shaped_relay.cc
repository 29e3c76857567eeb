#include "test/transport/shaped_relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>
#include <utility>

#include "test/transport/socket_pair.h"

namespace fasthorovod::transport {
namespace {

constexpr std::size_t kLargestPiece = 32 << 10;
constexpr int kBufferBytes = 64 << 10;
constexpr int kPollMs = 1;

}  // namespace

ShapedRelay::ShapedRelay(FileDescriptor from, FileDescriptor to, WireShape shape,
                         WireTraffic& traffic)
    : from_(std::move(from)), to_(std::move(to)), shape_(shape), traffic_(traffic), thread_([this] {
        carry();
      }) {}

ShapedRelay::~ShapedRelay() {
  stopped_.store(true);
  thread_.join();
}

std::size_t ShapedRelay::allowed() const {
  if (stalled_.load()) return 0;
  if (shape_.slower <= 1) return kLargestPiece;
  const std::uint64_t most = traffic_.fast_bytes.load() / static_cast<unsigned>(shape_.slower);
  return std::min<std::uint64_t>(kLargestPiece, most - std::min(most, carried_.load()));
}

void ShapedRelay::carry() {
  std::mt19937 random(shape_.seed);
  std::array<std::byte, kLargestPiece> bytes{};
  while (!stopped_.load()) {
    const std::size_t most = std::min<std::size_t>(allowed(), 1 + random() % kLargestPiece);
    pollfd readable{.fd = from_.get(), .events = POLLIN, .revents = 0};
    if (most == 0) std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
    if (most == 0 || ::poll(&readable, 1, kPollMs) <= 0) continue;
    const ssize_t count = ::recv(from_.get(), bytes.data(), most, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return;
    if (count < 0) continue;
    const auto size = static_cast<std::size_t>(count);
    if (!write_all(to_, std::span(bytes).first(size))) return;
    carried_.fetch_add(size);
    if (shape_.slower <= 1) traffic_.fast_bytes.fetch_add(size);
  }
}

std::unique_ptr<ShapedRelay> join_shaped(LanePlace& from, int from_rank, LanePlace& to, int to_rank,
                                         WireShape shape, WireTraffic& traffic) {
  auto near = connected_pair(SocketKind::kTcp, kBufferBytes);
  auto far = connected_pair(SocketKind::kTcp, kBufferBytes);
  from.add_flow(to_rank, std::move(near.first));
  to.add_flow(from_rank, std::move(far.second));
  return std::make_unique<ShapedRelay>(std::move(near.second), std::move(far.first), shape,
                                       traffic);
}

}  // namespace fasthorovod::transport
