#include "transport/aux_server.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::transport {
namespace {

constexpr int kForever = -1;
constexpr int kAskAgainMs = 1;

}  // namespace

core::Result<std::unique_ptr<AuxServer>> AuxServer::create(std::function<bool()> busy) {
  auto poller = Poller::create();
  if (!poller) return std::move(poller).error();
  return std::unique_ptr<AuxServer>(new AuxServer(std::move(*poller), std::move(busy)));
}

AuxServer::AuxServer(std::unique_ptr<Poller> poller, std::function<bool()> busy)
    : poller_(std::move(poller)), busy_(std::move(busy)), thread_([this] { run(); }) {}

AuxServer::~AuxServer() {
  stopped_.store(true);
  wake();
  thread_.join();
}

void AuxServer::add(AuxClient& client) {
  {
    const std::lock_guard lock(mutex_);
    clients_.push_back(&client);
  }
  wake();
}

void AuxServer::remove(AuxClient& client) {
  const std::lock_guard lock(mutex_);
  std::erase(clients_, &client);
}

void AuxServer::wake() {
  if (woken_.exchange(true)) return;
  if (idle_.load()) poller_->ring();
}

void AuxServer::run() {
  while (!stopped_.load()) {
    woken_.exchange(false);
    int timeout_ms = serve_all();
    const bool busy = busy_();
    check_all(busy);
    if (busy && timeout_ms == kForever) timeout_ms = static_cast<int>(kCheckInterval.count());
    idle_.store(true);
    if (woken_.load()) timeout_ms = 0;
    if (timeout_ms != 0) (void)poller_->wait(timeout_ms);
    idle_.store(false);
  }
}

// How long nobody needs to look again.
int AuxServer::serve_all() {
  const std::lock_guard lock(mutex_);
  bool again = false;
  for (AuxClient* client : clients_) again = client->serve() || again;
  bool quiet = true;
  for (AuxClient* client : clients_) quiet = client->arm() && quiet;
  if (!quiet) return 0;
  return again ? kAskAgainMs : kForever;
}

void AuxServer::check_all(bool busy) {
  const core::TimePoint now = core::Clock::now();
  if (busy && now < next_check_) return;
  next_check_ = busy ? now + kCheckInterval : core::TimePoint{};
  const std::lock_guard lock(mutex_);
  for (AuxClient* client : clients_) {
    if (busy) {
      client->check_alive(now);
    } else {
      client->forget_alive();
    }
  }
}

}  // namespace fasthorovod::transport
