// A non-blocking socket that coroutines of one io_context wait for. Inside transport only: it shows
// Asio.
//
// Shared by the coroutine that uses it and whoever may cut it short (its own time limit, a listener
// that closes). Thread: owner (the io_context's).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

class AsyncSocket final : public std::enable_shared_from_this<AsyncSocket> {
 public:
  AsyncSocket(boost::asio::io_context& context, FileDescriptor socket);
  ~AsyncSocket();
  AsyncSocket(const AsyncSocket&) = delete;
  AsyncSocket& operator=(const AsyncSocket&) = delete;

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Cuts the socket short once `limit` has passed.
  void limit(std::chrono::milliseconds limit);
  /// Ends every wait, now and later.
  void cut();
  [[nodiscard]] bool was_cut() const { return cut_; }

  /// False: the connection ended, failed or was cut before all was done.
  boost::asio::awaitable<bool> read_exactly(std::span<std::byte> into);
  boost::asio::awaitable<bool> write_all(std::span<const std::byte> bytes);
  boost::asio::awaitable<bool> wait_readable();
  boost::asio::awaitable<bool> wait_writable();

  /// Gives the socket away; this object is done.
  FileDescriptor take();

 private:
  boost::asio::awaitable<bool> wait(boost::asio::posix::stream_descriptor::wait_type what);

  FileDescriptor socket_;
  boost::asio::posix::stream_descriptor descriptor_;  // borrows socket_ for waiting
  boost::asio::steady_timer timer_;
  bool cut_ = false;
};

}  // namespace fasthorovod::transport
