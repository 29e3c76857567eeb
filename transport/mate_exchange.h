// The ranks of one host hand each other their arenas. Each listens at a door of its own, whose name
// the others learn through the rendezvous; of two ranks the higher one dials. Both look whether the
// other process is the same user's, say hello (mate_hello.h), and send the descriptor along.
//
// Strangers at the door (another user, garbage, silence) are refused, counted and logged; they hold
// up nobody. Inside transport only: it shows Asio.
//
// Thread: owner (the io_context's). Shared by the caller and its coroutines, which may outlive
// close() by a turn of the loop.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/arena.h"
#include "transport/async_socket.h"
#include "transport/local_socket.h"
#include "transport/mate.h"
#include "transport/mate_addresses.h"
#include "transport/mate_hello.h"
#include "transport/refusals.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

/// Where a rank of this host listens for the others.
struct MateDoor {
  std::string name;
  FileDescriptor socket;
};

/// Under a random name.
core::Result<MateDoor> open_mate_door();

class MateExchange final : public std::enable_shared_from_this<MateExchange> {
 public:
  /// `secret`, `refusals` and the context outlive it; `own` lives until close().
  MateExchange(boost::asio::io_context& context, const Secret& secret, RefusalLog& refusals,
               const MateHello& self, const Arena& own);

  /// Calls `on_end` once: when all of `mates` (ascending, without this rank) are here, or when one
  /// can not come any more. Not after close().
  void start(MateDoor door, std::vector<MateAddress> mates,
             std::function<void(core::Status)> on_end);
  void close();

  [[nodiscard]] std::vector<int> missing() const;
  /// The arenas, by rank, once all are here.
  [[nodiscard]] std::vector<Mate> take();

 private:
  struct Place {
    MateAddress address;
    std::optional<Arena> arena;
  };
  using Socket = std::shared_ptr<AsyncSocket>;
  using Self = std::shared_ptr<MateExchange>;

  static boost::asio::awaitable<void> serve(Self self, Socket door);
  static boost::asio::awaitable<void> hear(Self self, Socket guest, std::string from);
  static boost::asio::awaitable<void> dial(Self self, MateAddress mate);
  /// kUnavailable: asking again may help.
  static boost::asio::awaitable<core::Result<Parcel>> ask(Self self, MateAddress mate);
  static boost::asio::awaitable<core::Result<Parcel>> next_parcel(AsyncSocket& socket);

  void let_in(FileDescriptor socket);
  core::Status answer(AsyncSocket& guest, Parcel parcel);
  core::Result<Socket> call(const MateAddress& mate);
  core::Status settle(const MateAddress& mate, Parcel parcel);
  void place(Place& place, Arena arena);
  void fail(int rank, core::Error error);
  void refuse(RefusalCause cause, const std::string& from, const std::string& why);
  [[nodiscard]] Place* place_of(int rank);

  boost::asio::io_context& context_;
  const Secret& secret_;
  RefusalLog& refusals_;
  const MateHello self_;
  const Arena& own_;
  std::string door_name_;
  Socket door_;
  std::vector<Place> places_;
  std::list<Socket> guests_;  // who dialled and has not said hello; the oldest first
  std::vector<Socket> calls_;
  std::function<void(core::Status)> on_end_;
  bool open_ = false;
};

}  // namespace fasthorovod::transport
