// Where strangers arrive: the listening sockets of one process, and the answering side of the
// handshake.
//
// A connection has five seconds to prove itself; at most 64 may be trying at once. When all places
// are taken, further ones wait in the kernel until the oldest, after a quarter of a second at
// least, loses its place. Until then a connection costs a fixed few hundred bytes. Whoever fails is
// refused, counted and logged.
//
// Thread: owner (the io_context's). Callbacks come from there, and not after close().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/endpoint.h"
#include "transport/file_descriptor.h"
#include "transport/handshake.h"
#include "transport/refusals.h"

namespace boost::asio {
class io_context;
}

namespace fasthorovod::transport {

inline constexpr std::size_t kMaxUnproven = 64;
inline constexpr std::chrono::milliseconds kProofLimit{5'000};

/// A connection whose other end proved its claim and saw our proof.
struct Proven {
  Claim claim;
  SessionKeys keys;
  FileDescriptor socket;
  std::string remote;
};

struct ListenerHandlers {
  /// May this proven peer come in? kWelcome takes its place until welcome() or retract().
  std::function<Verdict(const Claim&)> admit;
  /// An admitted peer went before it confirmed: its place is free again.
  std::function<void(const Claim&)> retract;
  std::function<void(Proven)> welcome;
};

class Listener final {
 public:
  Listener(boost::asio::io_context& context, const Secret& secret,
           const AnsweringHandshake::Self& self, RefusalLog& refusals, ListenerHandlers handlers);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Listens at one more endpoint. Says which it became (a port that was 0 is known then).
  core::Result<Endpoint> add(const Endpoint& endpoint);

  void close();

 private:
  class State;
  std::shared_ptr<State> state_;  // also held by its coroutines until they end
};

}  // namespace fasthorovod::transport
