#include "transport/mate_exchange.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "transport/dialler.h"
#include "transport/listener.h"
#include "transport/socket.h"

namespace fasthorovod::transport {

namespace asio = boost::asio;

namespace {

using core::Error;
using core::ErrorCode;

RefusalCause cause_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kAuthentication:
      return RefusalCause::kSecret;
    case ErrorCode::kInvalidArgument:
      return RefusalCause::kRank;
    case ErrorCode::kTimedOut:
      return RefusalCause::kSlow;
    default:
      return RefusalCause::kGarbage;
  }
}

// The same error, as one after which another attempt may work.
Error passing(Error error) {
  if (error.code == ErrorCode::kPeerLost) error.code = ErrorCode::kUnavailable;
  return error;
}

}  // namespace

core::Result<MateDoor> open_mate_door() {
  std::array<std::byte, 16> random{};
  if (auto status = fill_random(random); !status) return std::move(status).error();
  std::string name = "fasthorovod-";
  for (const std::byte value : random) name += fmt::format("{:02x}", static_cast<unsigned>(value));
  auto socket = listen_locally(name);
  if (!socket) return std::move(socket).error();
  return MateDoor{std::move(name), std::move(*socket)};
}

MateExchange::MateExchange(asio::io_context& context, const Secret& secret, RefusalLog& refusals,
                           const MateHello& self, const Arena& own)
    : context_(context), secret_(secret), refusals_(refusals), self_(self), own_(own) {}

void MateExchange::start(MateDoor door, std::vector<MateAddress> mates,
                         std::function<void(core::Status)> on_end) {
  open_ = true;
  on_end_ = std::move(on_end);
  for (MateAddress& mate : mates) places_.push_back({std::move(mate), std::nullopt});
  door_name_ = std::move(door.name);
  door_ = std::make_shared<AsyncSocket>(context_, std::move(door.socket));
  asio::co_spawn(context_, serve(shared_from_this(), door_), asio::detached);
  for (const Place& place : places_) {
    if (place.address.rank > self_.rank) continue;  // that one dials
    asio::co_spawn(context_, dial(shared_from_this(), place.address), asio::detached);
  }
}

void MateExchange::close() {
  if (!open_) return;
  open_ = false;
  door_->cut();
  door_->take().reset();
  for (const Socket& guest : guests_) guest->cut();
  for (const Socket& call : calls_) call->cut();
}

std::vector<int> MateExchange::missing() const {
  std::vector<int> ranks;
  for (const Place& place : places_) {
    if (!place.arena) ranks.push_back(place.address.rank);
  }
  return ranks;
}

std::vector<Mate> MateExchange::take() {
  std::vector<Mate> mates;
  mates.reserve(places_.size());
  for (Place& place : places_) mates.push_back({place.address.rank, std::move(*place.arena)});
  places_.clear();
  return mates;
}

asio::awaitable<void> MateExchange::serve(Self self, Socket door) {
  while (self->open_) {
    const bool ready = co_await door->wait_readable();
    if (!ready) break;
    auto socket = accept_one(door->fd());
    if (!socket) co_return self->fail(self->self_.rank, std::move(socket).error());
    if (socket->valid()) self->let_in(std::move(*socket));
  }
}

void MateExchange::let_in(FileDescriptor socket) {
  const auto user = user_of(socket.get());
  if (!user) return refuse(RefusalCause::kGarbage, "this host", user.error().message);
  std::string from = fmt::format("user {} of this host", user->uid);
  if (auto status = check_user(*user, ::geteuid()); !status) {
    return refuse(RefusalCause::kUser, from, status.error().message);
  }
  // A rank says hello at once; should one lose its place to a crowd all the same, it dials again.
  if (guests_.size() >= kMaxUnproven) {
    guests_.front()->cut();
    guests_.pop_front();
  }
  const Socket& guest =
      guests_.emplace_back(std::make_shared<AsyncSocket>(context_, std::move(socket)));
  guest->limit(kProofLimit);
  asio::co_spawn(context_, hear(shared_from_this(), guest, std::move(from)), asio::detached);
}

asio::awaitable<void> MateExchange::hear(Self self, Socket guest, std::string from) {
  auto parcel = co_await next_parcel(*guest);
  self->guests_.remove(guest);
  if (!self->open_) co_return;
  const core::Status heard =
      parcel ? self->answer(*guest, std::move(*parcel)) : core::Status(std::move(parcel).error());
  if (!heard) self->refuse(cause_of(heard.error().code), from, heard.error().message);
}

core::Status MateExchange::answer(AsyncSocket& guest, Parcel parcel) {
  auto hello = decode_mate_hello(parcel.message, {door_name_, self_.rank}, secret_);
  if (!hello) return std::move(hello).error();
  MateHello expected = self_;
  expected.rank = hello->rank;
  Place* mate = place_of(hello->rank);
  if (*hello != expected || mate == nullptr || mate->arena || hello->rank < self_.rank) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("rank {} is there already, or has no business at this door", hello->rank)};
  }
  auto arena = Arena::open(std::move(parcel.content));
  if (!arena && arena.error().code == ErrorCode::kProtocol) return std::move(arena).error();
  if (!arena) {
    fail(self_.rank, std::move(arena).error());
    return {};
  }
  const auto reply = encode(self_, {door_name_, hello->rank}, secret_);
  if (auto sent = send_parcel(guest.fd(), reply, own_.fd()); !sent) return sent;
  place(*mate, std::move(*arena));
  return {};
}

asio::awaitable<void> MateExchange::dial(Self self, MateAddress mate) {
  BackOff back_off;
  while (self->open_) {
    auto parcel = co_await ask(self, mate);
    if (!self->open_) break;
    if (parcel) {
      core::Status settled = self->settle(mate, std::move(*parcel));
      if (!settled) self->fail(mate.rank, std::move(settled).error());
      co_return;
    }
    if (parcel.error().code != ErrorCode::kUnavailable) {
      co_return self->fail(mate.rank, std::move(parcel).error());
    }
    co_await pause(self->context_, back_off.next());
  }
}

asio::awaitable<core::Result<Parcel>> MateExchange::ask(Self self, MateAddress mate) {
  auto call = self->call(mate);
  if (!call) co_return std::move(call).error();
  auto parcel = co_await next_parcel(**call);
  std::erase(self->calls_, *call);
  if (!parcel) co_return passing(std::move(parcel).error());
  co_return parcel;
}

core::Result<MateExchange::Socket> MateExchange::call(const MateAddress& mate) {
  auto socket = dial_locally(mate.door);
  // A mate that left is told of by rank 0, who knows why.
  if (!socket) return passing(std::move(socket).error());
  auto user = user_of(socket->get());
  if (!user) return std::move(user).error();
  if (auto status = check_user(*user, ::geteuid()); !status) return std::move(status).error();
  const auto hello = encode(self_, {mate.door, mate.rank}, secret_);
  if (auto sent = send_parcel(socket->get(), hello, own_.fd()); !sent) {
    return passing(std::move(sent).error());
  }
  return calls_.emplace_back(std::make_shared<AsyncSocket>(context_, std::move(*socket)));
}

core::Status MateExchange::settle(const MateAddress& mate, Parcel parcel) {
  auto hello = decode_mate_hello(parcel.message, {mate.door, self_.rank}, secret_);
  if (!hello) return std::move(hello).error();
  MateHello expected = self_;
  expected.rank = mate.rank;
  if (*hello != expected) {
    return Error{ErrorCode::kProtocol, fmt::format("rank {} answered", hello->rank)};
  }
  auto arena = Arena::open(std::move(parcel.content));
  if (!arena) return std::move(arena).error();
  place(*place_of(mate.rank), std::move(*arena));
  return {};
}

asio::awaitable<core::Result<Parcel>> MateExchange::next_parcel(AsyncSocket& socket) {
  for (;;) {
    auto parcel = receive_parcel(socket.fd());
    if (!parcel) co_return std::move(parcel).error();
    if (*parcel) co_return std::move(**parcel);
    const bool ready = co_await socket.wait_readable();
    if (!ready) co_return Error{ErrorCode::kTimedOut, "it said nothing in time"};
  }
}

void MateExchange::place(Place& place, Arena arena) {
  place.arena.emplace(std::move(arena));
  if (!missing().empty()) return;
  if (const auto on_end = std::exchange(on_end_, {})) on_end({});
}

void MateExchange::fail(int rank, core::Error error) {
  if (!open_) return;
  error.culprit = rank;
  if (rank != self_.rank) {
    error = std::move(error).with_context(fmt::format("taking the arena of rank {}", rank));
  }
  if (const auto on_end = std::exchange(on_end_, {})) on_end(std::move(error));
}

void MateExchange::refuse(RefusalCause cause, const std::string& from, const std::string& why) {
  if (open_) refusals_.add(cause, from, why, core::Clock::now());
}

MateExchange::Place* MateExchange::place_of(int rank) {
  const auto found = std::ranges::find_if(
      places_, [rank](const Place& place) { return place.address.rank == rank; });
  return found == places_.end() ? nullptr : &*found;
}

}  // namespace fasthorovod::transport
