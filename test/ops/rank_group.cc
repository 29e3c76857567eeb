#include "test/ops/rank_group.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "transport/file_descriptor.h"
#include "transport/secret.h"
#include "transport/store_server.h"

namespace fasthorovod::ops::testing {
namespace {

// A file with a fresh job secret, gone with the object.
class SecretFile {
 public:
  SecretFile() {
    std::string path = ::testing::TempDir() + "fasthorovod-secret-XXXXXX";
    const transport::FileDescriptor file(mkstemp(path.data()));
    const auto secret = transport::Secret::generate();
    if (!file.valid() || !secret) std::abort();
    if (write(file.get(), secret->data(), secret->size()) != static_cast<ssize_t>(secret->size()))
      std::abort();
    path_ = path;
  }
  ~SecretFile() { unlink(path_.c_str()); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A port of the loopback that is free now.
int free_port() {
  const transport::FileDescriptor socket_fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
  if (getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    std::abort();
  return ntohs(address.sin_port);
}

core::Log make_log(int rank, bool quiet) {
  return {quiet ? core::LogLevel::kOff : core::LogLevel::kWarning,
          [rank](core::LogLevel, std::string_view line) {
            fmt::print(stderr, "[rank {}] {}\n", rank, line);
          }};
}

core::Config configure(int rank, int size, const SecretFile& secret, const GroupOptions& options) {
  core::Config config;
  config.rank = rank;
  config.size = size;
  config.secret_file = secret.path();
  config.start_timeout = std::chrono::seconds(20);
  options.adjust(config);
  return config;
}

void run_rank(const core::Config& config, bool quiet, const RankBody& body) {
  core::Log log = make_log(config.rank, quiet);
  auto engine = Engine::start(config, 0, log);
  ASSERT_TRUE(engine) << "rank " << config.rank << ": " << engine.error().message;
  body(**engine);
  (*engine)->shutdown();
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Waits for all children. Those that are stopped go on when all others have ended.
std::vector<int> codes_of(const std::vector<pid_t>& children) {
  std::map<pid_t, int> codes;
  std::set<pid_t> stopped;
  while (codes.size() < children.size()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WUNTRACED | WCONTINUED);
    if (WIFSTOPPED(status)) {
      stopped.insert(child);
    } else if (WIFCONTINUED(status)) {
      stopped.erase(child);
    } else {
      codes[child] = exit_code(status);
    }
    if (codes.size() + stopped.size() < children.size()) continue;
    for (const pid_t sleeper : stopped) kill(sleeper, SIGCONT);
  }
  std::vector<int> in_rank_order;
  for (const pid_t child : children) in_rank_order.push_back(codes[child]);
  return in_rank_order;
}

}  // namespace

void run_as_threads(int size, const RankBody& body, const GroupOptions& options) {
  const SecretFile secret_file;
  core::Log store_log = make_log(-1, options.quiet);
  const auto secret = transport::Secret::from_file(secret_file.path());
  ASSERT_TRUE(secret) << secret.error().message;
  const auto store =
      transport::StoreServer::start("127.0.0.1", *secret, secret->derive_job_id(), store_log);
  ASSERT_TRUE(store) << store.error().message;

  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      core::Config config = configure(rank, size, secret_file, options);
      config.store = (*store)->endpoint();
      run_rank(config, options.quiet, body);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

std::vector<int> run_as_processes(int size, const RankBody& body, const GroupOptions& options) {
  const SecretFile secret_file;
  const std::string rendezvous = fmt::format("127.0.0.1:{}", free_port());
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      core::Config config = configure(rank, size, secret_file, options);
      config.rendezvous = rendezvous;
      run_rank(config, options.quiet, body);
      std::fflush(nullptr);
      std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  return codes_of(children);
}

void live_apart(core::Config& config) {
  config.host_identity = fmt::format("host-{}", config.rank);
}

void live_in_pairs(core::Config& config) {
  config.host_identity = fmt::format("host-{}", config.rank / 2);
}

Submission allreduce_of(const std::string& name, std::vector<float>& values,
                        core::Reduction reduction) {
  Submission submission;
  submission.request.name = name;
  submission.request.reduction = reduction;
  submission.request.shape = {static_cast<std::int64_t>(values.size())};
  submission.input = values.data();
  submission.output = values.data();
  return submission;
}

core::Status outcome(const core::Result<Handle>& handle) {
  if (!handle) return handle.error();
  if (!handle->wait_for(std::chrono::seconds(30))) {
    return core::Error{core::ErrorCode::kInternal, "never completed"};
  }
  return handle->wait();
}

void expect_success(const core::Result<Handle>& handle) {
  const core::Status status = outcome(handle);
  EXPECT_TRUE(status) << status.error().message;
}

void expect_failure(const core::Result<Handle>& handle, core::ErrorCode code,
                    const std::vector<std::string>& words) {
  const core::Status status = outcome(handle);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, code) << status.error().message;
  for (const std::string& word : words) {
    EXPECT_NE(status.error().message.find(word), std::string::npos)
        << "'" << word << "' is not in: " << status.error().message;
  }
}

}  // namespace fasthorovod::ops::testing
