// The control connections of one rank: on rank 0 one to each other rank, elsewhere the one to rank
// 0.
//
// What arrives while nobody is attached is kept and handed over on attach(), so nothing is lost
// between the rendezvous and the engine. Thread: owner (the io_context's).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "transport/channel.h"

namespace fasthorovod::transport {

struct LinkHandlers {
  std::function<void(int rank, std::span<const std::byte> message)> on_message;
  std::function<void(int rank, core::Error error)> on_end;
};

class ControlLinks final {
 public:
  explicit ControlLinks(boost::asio::io_context& context) : context_(context) {}

  void add(int rank, FileDescriptor socket, const ChannelKeys& keys);
  /// Closes without a word.
  void drop(int rank);
  void close_all();
  [[nodiscard]] bool has(int rank) const { return links_.contains(rank); }

  /// A rank whose connection is gone takes messages silently: on_end has said it, or will.
  core::Status send(int rank, std::span<const std::byte> message);
  /// The end of this connection is no news from now on.
  void expect_close(int rank);

  void attach(LinkHandlers handlers);
  void detach() { handlers_.reset(); }

  [[nodiscard]] bool drained() const;
  void drain(core::TimePoint deadline);

 private:
  struct Link {
    std::unique_ptr<Channel> channel;
    bool expects_close = false;
  };
  struct Event {
    int rank;
    std::vector<std::byte> message;
    std::optional<core::Error> end;
  };
  void take(int rank, std::span<const std::byte> message);
  void end(int rank, core::Error error);

  boost::asio::io_context& context_;
  std::map<int, Link> links_;
  std::shared_ptr<LinkHandlers> handlers_;  // shared with a call in progress
  std::vector<Event> kept_;
};

}  // namespace fasthorovod::transport
