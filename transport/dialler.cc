#include "transport/dialler.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

#include "transport/async_socket.h"
#include "transport/socket.h"

namespace fasthorovod::transport {

namespace asio = boost::asio;

namespace {

DialFailure failure(core::ErrorCode code, const Endpoint& endpoint, const std::string& why,
                    Outlook outlook = Outlook::kOpen) {
  return {{code, fmt::format("{}: {}", endpoint.to_string(), why)}, outlook};
}

Outlook outlook_after(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTaken:
      return Outlook::kSettled;
    case Verdict::kEpoch:
    case Verdict::kBusy:
    case Verdict::kGarbage:
      return Outlook::kOpen;
    default:
      return Outlook::kHopeless;
  }
}

DialFailure refusal(Verdict verdict, const Endpoint& endpoint, const DiallingHandshake& handshake) {
  const auto code =
      verdict == Verdict::kSecret ? core::ErrorCode::kAuthentication : core::ErrorCode::kProtocol;
  return failure(code, endpoint, handshake.explain(verdict), outlook_after(verdict));
}

DialFailure silence(const AsyncSocket& socket, const Endpoint& endpoint) {
  if (socket.was_cut()) {
    return failure(core::ErrorCode::kTimedOut, endpoint,
                   fmt::format("no answer within {} ms", kDialLimit.count()));
  }
  return failure(core::ErrorCode::kPeerLost, endpoint,
                 "it closed the connection during the handshake");
}

asio::awaitable<DialResult> shake_hands(AsyncSocket& socket, const Endpoint& endpoint,
                                        const Secret& secret, const Claim& claim) {
  auto nonce = make_nonce();
  if (!nonce) co_return DialFailure{std::move(nonce).error(), Outlook::kSettled};
  DiallingHandshake handshake(secret, claim, *nonce);
  std::array<std::byte, kChallengeBytes> challenge{};
  if (!co_await socket.read_exactly(challenge)) co_return silence(socket, endpoint);
  const Verdict first = handshake.take_challenge(challenge);
  if (first == Verdict::kGarbage) co_return refusal(first, endpoint, handshake);
  const auto frame = handshake.claim_frame();
  const bool sent = co_await socket.write_all(frame);
  if (first != Verdict::kWelcome) co_return refusal(first, endpoint, handshake);
  std::array<std::byte, kAnswerBytes> answer{};
  if (!sent || !co_await socket.read_exactly(answer)) co_return silence(socket, endpoint);
  const Verdict verdict = handshake.take_answer(answer);
  if (verdict != Verdict::kWelcome) co_return refusal(verdict, endpoint, handshake);
  const std::array<std::byte, 1> confirm{kConfirm};
  if (!co_await socket.write_all(confirm)) co_return silence(socket, endpoint);
  co_return Dialled{socket.take(), handshake.keys(), endpoint};
}

asio::awaitable<DialResult> dial_one(asio::io_context& context, const Secret& secret,
                                     const Claim& claim, const Endpoint& endpoint) {
  auto begun = begin_connect(endpoint);
  if (!begun) co_return DialFailure{std::move(begun).error(), Outlook::kOpen};
  const auto socket = std::make_shared<AsyncSocket>(context, std::move(*begun));
  socket->limit(kDialLimit);
  if (!co_await socket->wait_writable()) co_return silence(*socket, endpoint);
  auto connected = finish_connect(socket->fd(), endpoint);
  if (!connected) co_return DialFailure{std::move(connected).error(), Outlook::kOpen};
  co_return co_await shake_hands(*socket, endpoint, secret, claim);
}

}  // namespace

asio::awaitable<DialResult> dial(asio::io_context& context, const Secret& secret, Claim claim,
                                 std::vector<Endpoint> endpoints) {
  DialFailure all{{core::ErrorCode::kUnavailable, "it listens nowhere"}, Outlook::kOpen};
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    DialResult result = co_await dial_one(context, secret, claim, endpoints[i]);
    if (std::holds_alternative<Dialled>(result)) co_return result;
    auto& failed = std::get<DialFailure>(result);
    // A refusal says more than an address that leads nowhere.
    if (i == 0 || failed.outlook > all.outlook) all.error.code = failed.error.code;
    all.outlook = std::max(all.outlook, failed.outlook);
    all.error.message =
        i == 0 ? failed.error.message : all.error.message + "; " + failed.error.message;
  }
  co_return all;
}

std::chrono::milliseconds BackOff::next() {
  return std::exchange(wait_, std::min(wait_ * 3 / 2, std::chrono::milliseconds(250)));
}

asio::awaitable<void> pause(asio::io_context& context, std::chrono::milliseconds time) {
  asio::steady_timer timer(context, time);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace fasthorovod::transport
