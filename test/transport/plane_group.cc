#include "test/transport/plane_group.h"

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "core/clock.h"
#include "transport/socket.h"

namespace fasthorovod::transport::testing {

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = core::Clock::now() + kPatience;
  while (core::Clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

std::uint16_t free_port(const std::string& address) {
  auto socket = listen_at({*parse_ip(address), 0}, 1);
  return socket ? local_endpoint(socket->get())->port : std::uint16_t{0};
}

std::size_t open_descriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

SecretFile::SecretFile(const std::string& text) {
  static std::atomic<int> number = 0;
  path_ = ::testing::TempDir() + "fasthorovod_test_" + std::to_string(::getpid()) + "_" +
          std::to_string(number++);
  std::ofstream(path_) << text << '\n';
}

SecretFile::~SecretFile() { std::remove(path_.c_str()); }

LogLines::LogLines()
    : log_(core::LogLevel::kTrace, [this](core::LogLevel, std::string_view line) {
        const std::lock_guard lock(mutex_);
        lines_.emplace_back(line);
      }) {}

bool LogLines::contain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      lines_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

Rank::Rank(std::unique_ptr<ControlPlane> plane) : plane_(std::move(plane)) {
  const auto note = [this](const auto& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  };
  ControlHandlers handlers;
  handlers.on_message = [this, note](int rank, std::span<const std::byte> message) {
    note([&] {
      messages_.emplace_back(
          rank, std::string(reinterpret_cast<const char*>(message.data()), message.size()));
    });
  };
  handlers.on_lost = [this, note](int rank, core::Error error) {
    note([&] {
      EXPECT_TRUE(lost_.emplace(rank, std::move(error)).second) << "lost twice: " << rank;
    });
  };
  handlers.on_flow = [this, note](int peer, std::uint32_t index, FileDescriptor socket) {
    note([&] {
      EXPECT_TRUE(flows_[peer].emplace(index, std::move(socket)).second) << "twice: " << index;
    });
  };
  handlers.on_flow_failed = [this, note](int peer, core::Error error) {
    note([&] { flow_failures_.emplace(peer, std::move(error)); });
  };
  thread_ = std::thread(
      [this, handlers = std::move(handlers)]() mutable { plane_->run(std::move(handlers)); });
}

Rank::~Rank() {
  plane_->stop();
  thread_.join();
}

void Rank::on_owner(const std::function<void(ControlPlane&)>& function) {
  std::promise<void> done;
  plane_->post([&] {
    function(*plane_);
    done.set_value();
  });
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
}

void Rank::send(int rank, const std::string& text) {
  on_owner([&](ControlPlane& plane) {
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_TRUE(plane.send(rank, {bytes.begin(), bytes.end()}));
  });
}

bool Rank::wait_until(const std::function<bool()>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, condition);
}

std::string Rank::receive(int* from) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [this] { return !messages_.empty(); })) return "";
  auto [rank, text] = std::move(messages_.front());
  messages_.erase(messages_.begin());
  if (from != nullptr) *from = rank;
  return text;
}

bool Rank::wait_lost(int rank) {
  return wait_until([&] { return lost_.contains(rank); });
}

bool Rank::has_lost(int rank) {
  const std::lock_guard lock(mutex_);
  return lost_.contains(rank);
}

core::Error Rank::loss(int rank) {
  const std::lock_guard lock(mutex_);
  return lost_.at(rank);
}

std::vector<FileDescriptor> Rank::take_flows(int peer, std::size_t count) {
  wait_until([&] { return flows_[peer].size() >= count || flow_failures_.contains(peer); });
  const std::lock_guard lock(mutex_);
  std::vector<FileDescriptor> sockets;
  for (auto& [index, socket] : std::exchange(flows_[peer], {}))
    sockets.push_back(std::move(socket));
  return sockets;
}

core::Error Rank::wait_flow_failure(int peer) {
  if (!wait_until([&] { return flow_failures_.contains(peer); })) return {};
  const std::lock_guard lock(mutex_);
  return flow_failures_.at(peer);
}

core::Status MemoryStore::put(const std::string& key, const std::string& value,
                              core::TimePoint /*deadline*/) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
  return {};
}

core::Result<std::string> MemoryStore::get(const std::string& key, core::TimePoint deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return values_.contains(key); })) {
    return core::Error{core::ErrorCode::kTimedOut, "nobody put " + key};
  }
  return values_.at(key);
}

std::string to_string(Mode mode) {
  switch (mode) {
    case Mode::kStore:
      return "Store";
    case Mode::kByHand:
      return "ByHand";
    case Mode::kGivenStore:
      return "GivenStore";
  }
  return "";
}

World::World(Mode mode, int size, const std::string& address) : mode_(mode), size_(size) {
  if (mode == Mode::kStore) {
    auto secret = Secret::from_file(secret_file_.path());
    auto store = StoreServer::start(address, *secret, secret->derive_job_id(), log_.log());
    if (!store) {
      ADD_FAILURE() << store.error().message;
      return;
    }
    store_ = std::move(*store);
    meeting_point_ = store_->endpoint();
  } else {
    meeting_point_ = Endpoint{*parse_ip(address), free_port(address)}.to_string();
  }
}

core::Config World::config(int rank) const {
  core::Config config;
  config.rank = rank;
  config.size = size_;
  config.secret_file = secret_file_.path();
  config.start_timeout = kPatience;
  (mode_ == Mode::kStore ? config.store : config.rendezvous) = meeting_point_;
  return config;
}

std::future<World::Outcome> World::start(const core::Config& config, std::uint32_t epoch) {
  return std::async(std::launch::async, [this, config, epoch] {
    if (mode_ == Mode::kGivenStore) {
      core::Config rest = config;
      rest.rendezvous.clear();
      auto secret = Secret::from_file(rest.secret_file);
      rest.secret_file.clear();
      return ControlPlane::connect(rest, epoch, log_.log(),
                                   {given_store_, meeting_point_, std::move(*secret)});
    }
    return ControlPlane::connect(config, epoch, log_.log());
  });
}

std::vector<std::unique_ptr<Rank>> World::start_all(
    std::uint32_t epoch, const std::function<void(core::Config&)>& change) {
  std::vector<std::future<Outcome>> starts;
  for (int rank = 0; rank < size_; ++rank) {
    core::Config own = config(rank);
    if (change) change(own);
    starts.push_back(start(own, epoch));
  }
  std::vector<std::unique_ptr<Rank>> ranks;
  for (auto& each : starts) {
    auto plane = each.get();
    if (plane) {
      ranks.push_back(std::make_unique<Rank>(std::move(*plane)));
    } else {
      ADD_FAILURE() << plane.error().message;
    }
  }
  EXPECT_EQ(ranks.size(), static_cast<std::size_t>(size_));
  return ranks;
}

}  // namespace fasthorovod::transport::testing
