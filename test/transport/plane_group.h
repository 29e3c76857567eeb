// Helpers of the control plane's tests: ranks as threads of this process, meeting through loopback.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "transport/control_plane.h"
#include "transport/store_server.h"

namespace fasthorovod::transport::testing {

using namespace std::chrono_literals;

/// Nothing that goes well takes so long, on any machine.
inline constexpr auto kPatience = 30s;

/// Looks again and again, until it is true or patience ends.
bool eventually(const std::function<bool()>& condition);

/// A free port of an address, which was somebody's for a moment.
std::uint16_t free_port(const std::string& address);

std::size_t open_descriptors();

/// A file with a secret, gone with the object.
class SecretFile final {
 public:
  explicit SecretFile(const std::string& text = "the secret of all tests");
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Collects what a rank logs.
class LogLines final {
 public:
  LogLines();
  core::Log& log() { return log_; }
  [[nodiscard]] bool contain(const std::string& text);

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
  core::Log log_;
};

/// One rank: its plane runs in a thread of its own; what happens is kept and can be waited for.
class Rank final {
 public:
  explicit Rank(std::unique_ptr<ControlPlane> plane);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  ControlPlane& plane() { return *plane_; }
  /// Runs `function` on the owner and waits for it.
  void on_owner(const std::function<void(ControlPlane&)>& function);
  void send(int rank, const std::string& text);

  /// Waits until the next message; "" when none came.
  std::string receive(int* from = nullptr);
  bool wait_lost(int rank);
  [[nodiscard]] bool has_lost(int rank);
  core::Error loss(int rank);
  /// Waits for `count` flows to `peer` and takes them, by index; fewer when they did not come.
  std::vector<FileDescriptor> take_flows(int peer, std::size_t count);
  core::Error wait_flow_failure(int peer);
  bool wait_until(const std::function<bool()>& condition);

 private:
  std::unique_ptr<ControlPlane> plane_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int, std::string>> messages_;
  std::map<int, core::Error> lost_;
  std::map<int, std::map<std::uint32_t, FileDescriptor>> flows_;
  std::map<int, core::Error> flow_failures_;
  std::thread thread_;
};

/// A store in the memory of this process.
class MemoryStore final : public KeyValueStore {
 public:
  core::Status put(const std::string& key, const std::string& value,
                   core::TimePoint deadline) override;
  core::Result<std::string> get(const std::string& key, core::TimePoint deadline) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

enum class Mode { kStore, kByHand, kGivenStore };
std::string to_string(Mode mode);

/// A world on loopback.
class World final {
 public:
  World(Mode mode, int size, const std::string& address = "127.0.0.1");

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] core::Config config(int rank) const;
  using Outcome = core::Result<std::unique_ptr<ControlPlane>>;
  std::future<Outcome> start(const core::Config& config, std::uint32_t epoch = 0);
  /// Starts every rank as configured, changed by `change`, and expects all to come up.
  std::vector<std::unique_ptr<Rank>> start_all(
      std::uint32_t epoch = 0, const std::function<void(core::Config&)>& change = {});
  /// The launcher's store goes away (Mode::kStore).
  void stop_store() { store_.reset(); }
  [[nodiscard]] LogLines& log() { return log_; }
  [[nodiscard]] const std::string& meeting_point() const { return meeting_point_; }
  [[nodiscard]] const SecretFile& secret_file() const { return secret_file_; }

 private:
  const Mode mode_;
  const int size_;
  SecretFile secret_file_;
  LogLines log_;
  std::unique_ptr<StoreServer> store_;
  MemoryStore given_store_;
  std::string meeting_point_;
};

}  // namespace fasthorovod::transport::testing
