#include "transport/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "core/control_message.h"
#include "core/wire.h"

namespace fasthorovod::transport {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kHeaderBytes = 4 + 8;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kReadsATurn = 16;  // then others get a turn

bool is_tag_of(const Mac& mac, std::span<const std::byte> tag) {
  Mac padded = mac;
  std::ranges::copy(tag, padded.begin());
  return equal(mac, padded);
}

core::Error protocol_error(std::string message) {
  return {core::ErrorCode::kProtocol, std::move(message)};
}

}  // namespace

class Channel::State final : public std::enable_shared_from_this<Channel::State> {
 public:
  State(asio::io_context& context, FileDescriptor socket, const ChannelKeys& keys)
      : context_(context),
        socket_(std::move(socket)),
        descriptor_(context),
        mac_of_sent_(keys.send),
        mac_of_received_(keys.receive) {
    boost::system::error_code error;
    descriptor_.assign(socket_.get(), error);
    if (error) broken_ = core::system_error("watching a socket", error.value());
  }
  ~State() { descriptor_.release(); }

  void start(ChannelHandlers handlers) {
    handlers_ = std::make_shared<ChannelHandlers>(std::move(handlers));
    if (std::exchange(started_, true)) return;
    asio::post(context_, [self = shared_from_this()] { self->read_turn(); });
  }

  core::Status send(std::span<const std::byte> message) {
    if (message.size() > core::kMaxControlBytes) {
      return core::Error{core::ErrorCode::kInvalidArgument,
                         fmt::format("a control message of {} bytes is too long", message.size())};
    }
    if (!writable_) return {};  // the reading side reports the end, after the last message
    core::WireWriter writer;
    writer.u32(static_cast<std::uint32_t>(message.size()));
    writer.u64(sent_++);
    writer.bytes(message);
    auto frame = std::move(writer).take();
    const Mac mac = mac_of_sent_(frame);
    frame.insert(frame.end(), mac.begin(), mac.begin() + kTagBytes);
    queue_.push_back(std::move(frame));
    if (queue_.size() == 1) write();
    return {};
  }

  [[nodiscard]] bool drained() const { return queue_.empty(); }

  void drain(core::TimePoint deadline) {
    while (!queue_.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - core::Clock::now());
      if (left.count() <= 0) return;
      pollfd ready{socket_.get(), POLLOUT, 0};
      ::poll(&ready, 1, static_cast<int>(left.count()));
      put_queued();
    }
  }

  void close() {
    if (std::exchange(closed_, true)) return;
    descriptor_.release();
    // Unread bytes would turn the close into a reset, which could overtake what was sent last.
    std::array<std::byte, 4096> rest;
    while (::recv(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    ::shutdown(socket_.get(), SHUT_WR);
    socket_.reset();
    queue_.clear();
  }

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  void write() {
    put_queued();
    if (queue_.empty() || waiting_to_write_) return;
    waiting_to_write_ = true;
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_write,
                           [self = shared_from_this()](const boost::system::error_code& error) {
                             self->waiting_to_write_ = false;
                             if (!error && !self->closed_) self->write();
                           });
  }

  void put_queued() {
    while (!queue_.empty()) {
      const auto rest = std::span(queue_.front()).subspan(written_);
      const ssize_t put =
          ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) return;
      if (put < 0) {
        writable_ = false;
        queue_.clear();
        return;
      }
      written_ += static_cast<std::size_t>(put);
      if (written_ < queue_.front().size()) continue;
      queue_.pop_front();
      written_ = 0;
    }
  }

  // Takes what is there, then waits for more.
  void read_turn() {
    if (closed_) return;
    if (broken_) return end(*broken_);
    for (int i = 0; i < kReadsATurn; ++i) {
      make_room();
      const ssize_t got =
          ::recv(socket_.get(), inbox_.data() + filled_, inbox_.size() - filled_, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) break;
      if (got < 0)
        return end({core::ErrorCode::kPeerLost, core::system_error("receiving", errno).message});
      if (got == 0)
        return end({core::ErrorCode::kPeerLost, "the other side closed the connection"});
      filled_ += static_cast<std::size_t>(got);
      if (!deliver()) return;
    }
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [self = shared_from_this()](const boost::system::error_code& error) {
                             if (!error) self->read_turn();
                           });
  }

  // Room for the frame that has begun, or for a common read.
  void make_room() {
    const std::size_t wanted = std::max(kReadBytes, frame_bytes_);
    if (inbox_.size() == wanted) return;
    if (inbox_.size() > wanted && filled_ > wanted) return;
    inbox_.resize(wanted);
    if (wanted == kReadBytes) inbox_.shrink_to_fit();
  }

  // Hands on all whole frames. False: the channel is over.
  bool deliver() {
    std::size_t begin = 0;
    for (;;) {
      frame_bytes_ = 0;
      const auto rest = std::span(inbox_).subspan(begin, filled_ - begin);
      if (rest.size() < kHeaderBytes) break;
      core::WireReader reader(rest);
      const std::size_t length = reader.u32();
      const auto sequence = reader.u64();
      if (length > core::kMaxControlBytes)
        return fail(fmt::format("a control frame of {} bytes", length));
      if (sequence != received_) return fail("a control frame out of sequence");
      frame_bytes_ = kHeaderBytes + length + kTagBytes;
      if (rest.size() < frame_bytes_) break;
      const auto signed_part = rest.first(kHeaderBytes + length);
      if (!is_tag_of(mac_of_received_(signed_part), rest.subspan(signed_part.size(), kTagBytes))) {
        return fail("a control frame whose MAC is wrong");
      }
      ++received_;
      begin += frame_bytes_;
      const auto handlers = handlers_;  // start() may replace them during the call
      handlers->on_message(signed_part.subspan(kHeaderBytes));
      if (closed_) return false;
    }
    if (begin > 0) std::memmove(inbox_.data(), inbox_.data() + begin, filled_ - begin);
    filled_ -= begin;
    return true;
  }

  bool fail(std::string message) {
    end(protocol_error(std::move(message)));
    return false;
  }

  void end(core::Error error) {
    const auto handlers = handlers_;
    close();
    handlers->on_end(std::move(error));
  }

  asio::io_context& context_;
  FileDescriptor socket_;
  asio::posix::stream_descriptor descriptor_;  // borrows socket_ for waiting
  KeyedMac mac_of_sent_;
  KeyedMac mac_of_received_;
  std::optional<core::Error> broken_;
  std::shared_ptr<ChannelHandlers> handlers_;  // shared with a call in progress
  bool started_ = false;
  bool closed_ = false;

  std::deque<std::vector<std::byte>> queue_;
  std::size_t written_ = 0;  // of the first frame
  std::uint64_t sent_ = 0;
  bool writable_ = true;
  bool waiting_to_write_ = false;

  std::vector<std::byte> inbox_;
  std::size_t filled_ = 0;
  std::size_t frame_bytes_ = 0;  // of the frame that has begun, once known
  std::uint64_t received_ = 0;
};

Channel::Channel(asio::io_context& context, FileDescriptor socket, const ChannelKeys& keys)
    : state_(std::make_shared<State>(context, std::move(socket), keys)) {}
Channel::~Channel() { close(); }

void Channel::start(ChannelHandlers handlers) { state_->start(std::move(handlers)); }
core::Status Channel::send(std::span<const std::byte> message) { return state_->send(message); }
bool Channel::drained() const { return state_->drained(); }
void Channel::drain(std::chrono::steady_clock::time_point deadline) { state_->drain(deadline); }
void Channel::close() { state_->close(); }
int Channel::fd() const { return state_->fd(); }

}  // namespace fasthorovod::transport
