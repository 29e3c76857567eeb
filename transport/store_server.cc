#include "transport/store_server.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/channel.h"
#include "transport/listener.h"
#include "transport/refusals.h"
#include "transport/store_message.h"

namespace fasthorovod::transport {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMaxClients = 8192;
constexpr std::size_t kMaxKeys = 4096;

struct Client {
  std::unique_ptr<Channel> channel;
  std::optional<std::string> waits_for;  // the key it asked for, until somebody puts it
};

class AsioStoreServer final : public StoreServer {
 public:
  AsioStoreServer(const Secret& secret, const core::JobId& job, core::Log& log)
      : secret_(secret.copy()),
        log_(log),
        refusals_(log),
        listener_(context_, secret_, {.job = job, .epoch = std::nullopt, .rank = kNoRank},
                  refusals_,
                  {.admit = [this](const Claim& claim) { return admit(claim); },
                   .retract = [](const Claim&) {},
                   .welcome = [this](Proven proven) { add_client(std::move(proven)); }}) {}

  ~AsioStoreServer() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  core::Status start(const IpAddress& address) {
    auto bound = listener_.add({address, 0});
    if (!bound) return std::move(bound).error();
    endpoint_ = *bound;
    // Signals are for the launcher's own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] {
      const auto keep_running = asio::make_work_guard(context_);
      context_.run();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }

  [[nodiscard]] std::string endpoint() const override { return endpoint_.to_string(); }

 private:
  [[nodiscard]] Verdict admit(const Claim& claim) const {
    if (claim.purpose != Purpose::kStore) return Verdict::kGarbage;
    return clients_.size() < kMaxClients ? Verdict::kWelcome : Verdict::kBusy;
  }

  void add_client(Proven proven) {
    const std::uint64_t id = next_client_++;
    const ChannelKeys keys{proven.keys.of_answerer, proven.keys.of_dialler};
    Client& client = clients_[id];
    client.channel = std::make_unique<Channel>(context_, std::move(proven.socket), keys);
    client.channel->start({.on_message = [this, id](auto message) { serve(id, message); },
                           .on_end = [this, id](const core::Error&) { clients_.erase(id); }});
  }

  void serve(std::uint64_t id, std::span<const std::byte> bytes) {
    auto message = decode_store_message(bytes);
    if (!message) {
      log_.warning("the store ended a connection that sent a request without sense");
      clients_.erase(id);
    } else if (message->kind == StoreMessage::Kind::kPut) {
      put(id, *message);
    } else {
      get(id, *message);
    }
  }

  void put(std::uint64_t id, const StoreMessage& message) {
    // Keys are not removed, and a job needs one an epoch: the oldest in the order of names are
    // history.
    if (values_.size() >= kMaxKeys && !values_.contains(message.key))
      values_.erase(values_.begin());
    values_[message.key] = message.value;
    (void)clients_[id].channel->send(encode(message));
    for (auto& [other, client] : clients_) {
      if (client.waits_for == message.key) answer(client, message.key);
    }
  }

  void get(std::uint64_t id, const StoreMessage& message) {
    Client& client = clients_[id];
    client.waits_for = message.key;
    if (values_.contains(message.key)) answer(client, message.key);
  }

  void answer(Client& client, const std::string& key) {
    client.waits_for.reset();
    (void)client.channel->send(encode({StoreMessage::Kind::kGet, key, values_.at(key)}));
  }

  const Secret secret_;
  core::Log& log_;
  Endpoint endpoint_;
  asio::io_context context_;
  RefusalLog refusals_;
  std::map<std::string, std::string> values_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t next_client_ = 0;
  Listener listener_;
  std::thread thread_;
};

}  // namespace

core::Result<std::unique_ptr<StoreServer>> StoreServer::start(const std::string& address,
                                                              const Secret& secret,
                                                              const core::JobId& job,
                                                              core::Log& log) {
  const auto literal = parse_ip(address);
  if (!literal) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       "the store listens at a literal address, not at '" + address + "'"};
  }
  auto server = std::make_unique<AsioStoreServer>(secret, job, log);
  if (auto status = server->start(*literal); !status) return std::move(status).error();
  return std::unique_ptr<StoreServer>(std::move(server));
}

}  // namespace fasthorovod::transport
