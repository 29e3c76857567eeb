#include "transport/store_client.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <optional>
#include <utility>

#include "transport/addresses.h"
#include "transport/channel.h"
#include "transport/meeting.h"
#include "transport/store_message.h"

namespace fasthorovod::transport {

namespace asio = boost::asio;

class StoreClient::Impl {
 public:
  core::Status connect(const std::string& where, const HostPort& host, const Secret& secret,
                       const Claim& claim, core::TimePoint deadline) {
    const MeetingPlan plan{.claim = claim,
                           .what = "the store",
                           .where = where,
                           .endpoints = [host] { return endpoints_of(host); },
                           .decoys = false};
    auto met = meet(context_, secret, plan, deadline);
    if (!met) return std::move(met).error();
    endpoint_ = met->endpoint;
    channel_.emplace(context_, std::move(met->socket),
                     ChannelKeys{met->keys.of_dialler, met->keys.of_answerer});
    channel_->start({.on_message = [this](auto message) { take(message); },
                     .on_end = [this](core::Error error) { finish(std::move(error)); }});
    return {};
  }

  core::Result<std::string> ask(const StoreMessage& request, core::TimePoint deadline) {
    if (request.key.size() > kMaxStoreText || request.value.size() > kMaxStoreText) {
      return core::Error{core::ErrorCode::kInvalidArgument, "too long for the store"};
    }
    if (ended_) return *ended_;
    answer_.reset();
    done_ = false;
    if (auto status = channel_->send(encode(request)); !status) return std::move(status).error();
    if (!run_until(context_, done_, deadline)) {
      return core::Error{core::ErrorCode::kTimedOut,
                         fmt::format("the store did not answer about '{}'", request.key)};
    }
    if (ended_) return *ended_;
    if (!answer_ || answer_->key != request.key)
      return core::Error{core::ErrorCode::kProtocol, "a wrong answer of the store"};
    return answer_->value;
  }

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

 private:
  static core::Result<std::vector<Endpoint>> endpoints_of(const HostPort& host) {
    auto addresses = resolve(host.host);
    if (!addresses) return std::move(addresses).error();
    std::vector<Endpoint> endpoints;
    for (const IpAddress& address : *addresses) endpoints.push_back({address, host.port});
    return endpoints;
  }

  void take(std::span<const std::byte> message) {
    answer_ = decode_store_message(message);
    done_ = true;
  }

  void finish(core::Error error) {
    ended_ = std::move(error).with_context("the connection to the store");
    done_ = true;
  }

  asio::io_context context_;
  Endpoint endpoint_;
  std::optional<Channel> channel_;
  std::optional<StoreMessage> answer_;
  std::optional<core::Error> ended_;
  bool done_ = false;
};

core::Result<std::unique_ptr<StoreClient>> StoreClient::connect(const std::string& where,
                                                                const Secret& secret,
                                                                const core::JobId& job, int rank,
                                                                core::TimePoint deadline) {
  auto host = parse_host_port(where);
  if (!host) return std::move(host).error().with_context("FASTHOROVOD_STORE");
  auto impl = std::make_unique<Impl>();
  const Claim claim{.job = job, .purpose = Purpose::kStore, .dialling_rank = rank};
  if (auto status = impl->connect(where, *host, secret, claim, deadline); !status)
    return std::move(status).error();
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(impl)));
}

StoreClient::StoreClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreClient::~StoreClient() = default;

core::Status StoreClient::put(const std::string& key, const std::string& value,
                              core::TimePoint deadline) {
  auto answer = impl_->ask({StoreMessage::Kind::kPut, key, value}, deadline);
  if (!answer) return std::move(answer).error();
  return {};
}

core::Result<std::string> StoreClient::get(const std::string& key, core::TimePoint deadline) {
  return impl_->ask({StoreMessage::Kind::kGet, key, ""}, deadline);
}

const Endpoint& StoreClient::endpoint() const { return impl_->endpoint(); }

}  // namespace fasthorovod::transport
