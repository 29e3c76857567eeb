#include "transport/listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <utility>

#include "transport/async_socket.h"
#include "transport/socket.h"

namespace fasthorovod::transport {

namespace asio = boost::asio;

namespace {

constexpr auto kPlaceKept = std::chrono::milliseconds(250);  // even when others wait for the place
constexpr auto kAfterFailedAccept = std::chrono::milliseconds(100);

RefusalCause cause_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSecret:
      return RefusalCause::kSecret;
    case Verdict::kJob:
      return RefusalCause::kJob;
    case Verdict::kVersion:
      return RefusalCause::kVersion;
    case Verdict::kEpoch:
      return RefusalCause::kEpoch;
    case Verdict::kRank:
    case Verdict::kTaken:
      return RefusalCause::kRank;
    default:
      return RefusalCause::kGarbage;
  }
}

}  // namespace

class Listener::State final : public std::enable_shared_from_this<Listener::State> {
 public:
  State(asio::io_context& context, const Secret& secret, const AnsweringHandshake::Self& self,
        RefusalLog& refusals, ListenerHandlers handlers)
      : context_(context),
        secret_(secret),
        self_(self),
        refusals_(refusals),
        handlers_(std::move(handlers)) {}

  core::Result<Endpoint> add(const Endpoint& endpoint) {
    auto socket = listen_at(endpoint, SOMAXCONN);
    if (!socket) return std::move(socket).error();
    const auto bound = local_endpoint(socket->get());
    if (!bound) return core::system_error("asking where a socket listens", errno);
    auto door = std::make_shared<Door>(context_, std::move(*socket));
    doors_.push_back(door);
    asio::co_spawn(context_, serve(shared_from_this(), std::move(door)), asio::detached);
    return *bound;
  }

  void close() {
    open_ = false;
    for (const auto& door : doors_) {
      door->socket->cut();
      door->socket->take().reset();
      door->gate.cancel();
    }
    doors_.clear();
    for (const auto& guest : guests_) guest.socket->cut();
  }

 private:
  // A listening socket, and what its coroutine waits at when all places are taken.
  struct Door {
    Door(asio::io_context& context, FileDescriptor listening)
        : socket(std::make_shared<AsyncSocket>(context, std::move(listening))), gate(context) {}
    std::shared_ptr<AsyncSocket> socket;
    asio::steady_timer gate;
  };
  struct Guest {
    std::shared_ptr<AsyncSocket> socket;
    core::TimePoint since;
    bool evicted = false;
  };
  using Place = std::list<Guest>::iterator;

  // Each coroutine holds the state, so that it may outlive the Listener by a turn of the loop.
  static asio::awaitable<void> serve(std::shared_ptr<State> state, std::shared_ptr<Door> door) {
    while (state->open_) {
      if (!co_await door->socket->wait_readable()) break;
      co_await state->wait_for_place(door->gate);
      if (!state->open_) break;
      auto socket = accept_one(door->socket->fd());
      if (!socket) {
        // Out of descriptors, say: that passes, and the kernel keeps who waits.
        state->refusals_.add(RefusalCause::kSlow, "the system", socket.error().message,
                             core::Clock::now());
        co_await pause(door->gate, core::Clock::now() + kAfterFailedAccept);
      } else if (socket->valid()) {
        state->begin(std::move(*socket));
      }
    }
  }

  static asio::awaitable<void> pause(asio::steady_timer& timer, core::TimePoint until) {
    timer.expires_at(until);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::awaitable<void> wait_for_place(asio::steady_timer& gate) {
    while (open_ && guests_.size() >= kMaxUnproven) {
      const auto oldest = std::ranges::find(guests_, false, &Guest::evicted);
      const auto now = core::Clock::now();
      if (oldest == guests_.end()) {
        co_await pause(gate, now + kPlaceKept);
      } else if (now - oldest->since < kPlaceKept) {
        co_await pause(gate, oldest->since + kPlaceKept);
      } else {
        oldest->evicted = true;
        oldest->socket->cut();
        co_await pause(gate, now + kPlaceKept);
      }
    }
  }

  void begin(FileDescriptor socket) {
    const auto from = remote_endpoint(socket.get());
    auto guest = std::make_shared<AsyncSocket>(context_, std::move(socket));
    guest->limit(kProofLimit);
    guests_.push_back({std::move(guest), core::Clock::now(), false});
    const Endpoint remote = from.value_or(Endpoint{});
    asio::co_spawn(context_, receive(shared_from_this(), std::prev(guests_.end()), remote),
                   asio::detached);
  }

  static asio::awaitable<void> receive(std::shared_ptr<State> state, Place place, Endpoint remote) {
    const std::shared_ptr<AsyncSocket> socket = place->socket;
    auto nonce = make_nonce();
    if (nonce) {
      AnsweringHandshake handshake(state->secret_, state->self_, *nonce);
      co_await state->examine(*socket, handshake, remote);
    }
    state->guests_.erase(place);
    for (const auto& door : state->doors_) door->gate.cancel();
  }

  // The whole conversation with one stranger; afterwards it was handed on or refused.
  asio::awaitable<void> examine(AsyncSocket& socket, AnsweringHandshake& handshake,
                                const Endpoint& remote) {
    if (!co_await socket.write_all(handshake.challenge())) co_return vanish(socket, remote);
    std::array<std::byte, kClaimBytes> frame{};
    const std::span<std::byte, kClaimBytes> bytes(frame);
    const auto prefix = bytes.first<kPrefixBytes>();
    if (!co_await socket.read_exactly(prefix)) co_return vanish(socket, remote);
    Verdict verdict = handshake.take_prefix(prefix);
    if (verdict == Verdict::kWelcome) {
      const auto rest = bytes.subspan<kPrefixBytes>();
      if (!co_await socket.read_exactly(rest)) co_return vanish(socket, remote);
      verdict = handshake.take_claim(rest);
    }
    if (verdict == Verdict::kWelcome && open_) verdict = handlers_.admit(handshake.claim());
    if (verdict != Verdict::kWelcome) {
      count(cause_of(verdict), remote, handshake.explain(verdict), verdict);
      const auto answer = handshake.answer(verdict);
      (void)co_await socket.write_all(answer);
      co_return;
    }
    co_await let_in(socket, handshake, remote);
  }

  asio::awaitable<void> let_in(AsyncSocket& socket, AnsweringHandshake& handshake,
                               const Endpoint& remote) {
    const auto answer = handshake.answer(Verdict::kWelcome);
    std::array<std::byte, 1> confirm{};
    bool confirmed = co_await socket.write_all(answer);
    if (confirmed) confirmed = co_await socket.read_exactly(confirm);
    if (!open_) co_return;
    if (!confirmed || confirm[0] != kConfirm) {
      handlers_.retract(handshake.claim());
      co_return vanish(socket, remote);
    }
    Proven proven{handshake.claim(), handshake.keys(), socket.take(), remote.to_string()};
    handlers_.welcome(std::move(proven));
  }

  // A stranger that left, or whose time was up.
  void vanish(const AsyncSocket& socket, const Endpoint& remote) {
    if (!open_) return;
    if (socket.was_cut()) {
      count(RefusalCause::kSlow, remote, "it did not prove itself in time", Verdict::kGarbage);
    } else {
      count(RefusalCause::kGarbage, remote, "it left before it proved itself", Verdict::kGarbage);
    }
  }

  void count(RefusalCause cause, const Endpoint& remote, const std::string& why, Verdict verdict) {
    if (verdict == Verdict::kBusy) return;  // one of ours, in a hurry
    refusals_.add(cause, remote.address.to_string(), why, core::Clock::now());
  }

  asio::io_context& context_;
  const Secret& secret_;
  const AnsweringHandshake::Self self_;
  RefusalLog& refusals_;
  const ListenerHandlers handlers_;
  std::vector<std::shared_ptr<Door>> doors_;  // each also held by its coroutine
  std::list<Guest> guests_;
  bool open_ = true;
};

Listener::Listener(asio::io_context& context, const Secret& secret,
                   const AnsweringHandshake::Self& self, RefusalLog& refusals,
                   ListenerHandlers handlers)
    : state_(std::make_shared<State>(context, secret, self, refusals, std::move(handlers))) {}

Listener::~Listener() { close(); }

core::Result<Endpoint> Listener::add(const Endpoint& endpoint) { return state_->add(endpoint); }

void Listener::close() { state_->close(); }

}  // namespace fasthorovod::transport
