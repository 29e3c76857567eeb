#include "transport/async_socket.h"

#include <sys/socket.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

namespace fasthorovod::transport {

namespace asio = boost::asio;

AsyncSocket::AsyncSocket(asio::io_context& context, FileDescriptor socket)
    : socket_(std::move(socket)), descriptor_(context), timer_(context) {
  boost::system::error_code error;
  descriptor_.assign(socket_.get(), error);
  cut_ = static_cast<bool>(error);
}

AsyncSocket::~AsyncSocket() { descriptor_.release(); }

void AsyncSocket::limit(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (error) return;
    if (const auto self = weak.lock()) self->cut();
  });
}

void AsyncSocket::cut() {
  cut_ = true;
  boost::system::error_code ignored;
  descriptor_.cancel(ignored);
}

asio::awaitable<bool> AsyncSocket::wait(asio::posix::stream_descriptor::wait_type what) {
  if (cut_) co_return false;
  boost::system::error_code error;
  co_await descriptor_.async_wait(what, asio::redirect_error(asio::use_awaitable, error));
  co_return !error && !cut_;
}

asio::awaitable<bool> AsyncSocket::wait_readable() {
  return wait(asio::posix::stream_descriptor::wait_read);
}
asio::awaitable<bool> AsyncSocket::wait_writable() {
  return wait(asio::posix::stream_descriptor::wait_write);
}

asio::awaitable<bool> AsyncSocket::read_exactly(std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (got > 0) {
      into = into.subspan(static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || errno != EAGAIN) co_return false;
    const bool ready = co_await wait_readable();
    if (!ready) co_return false;
  }
  co_return !cut_;
}

asio::awaitable<bool> AsyncSocket::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return false;
    const bool ready = co_await wait_writable();
    if (!ready) co_return false;
  }
  co_return !cut_;
}

FileDescriptor AsyncSocket::take() {
  timer_.cancel();
  descriptor_.release();
  return std::move(socket_);
}

}  // namespace fasthorovod::transport
