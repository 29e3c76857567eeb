// Whole messages over one proven connection, in order, in both directions.
//
// A frame is: length (u32, of the payload), sequence (u64, from 0 in each direction), payload, the
// first 16 bytes of an HMAC-SHA256 over all that under the direction's key. The length is checked
// against core::kMaxControlBytes before anything is allocated; a frame with a wrong length,
// sequence or MAC ends the channel.
//
// Thread: owner (the io_context's). Callbacks come from there, never from inside send(), and not
// after close().
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "transport/file_descriptor.h"
#include "transport/secret.h"

namespace boost::asio {
class io_context;
}

namespace fasthorovod::transport {

/// The keys as this end uses them.
struct ChannelKeys {
  Mac send{};
  Mac receive{};
};

struct ChannelHandlers {
  std::function<void(std::span<const std::byte> message)> on_message;
  std::function<void(core::Error error)> on_end;  // once, unless close() came first
};

class Channel final {
 public:
  Channel(boost::asio::io_context& context, FileDescriptor socket, const ChannelKeys& keys);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Begins to read. Once more: other handlers from the next message on.
  void start(ChannelHandlers handlers);

  /// Queues a message; what the socket takes leaves at once. Refused when it is too long.
  core::Status send(std::span<const std::byte> message);

  /// True when nothing is queued, or never will leave.
  [[nodiscard]] bool drained() const;

  /// Waits until drained or `deadline`, blocking.
  void drain(std::chrono::steady_clock::time_point deadline);

  void close();

  [[nodiscard]] int fd() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // also held by its pending waits
};

}  // namespace fasthorovod::transport
