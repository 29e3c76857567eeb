#include "test/transport/mate_group.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <utility>

namespace fasthorovod::transport::testing {

Met meet_here(World& world, const core::Config& config, std::uint32_t epoch) {
  auto plane = world.start(config, epoch).get();
  auto arena = Arena::create(1 << 20);
  EXPECT_TRUE(arena);
  if (!plane) return {nullptr, std::move(*arena), std::move(plane).error()};
  arena->bytes()[0] = static_cast<std::byte>(config.rank);
  auto mates = (*plane)->meet_mates(*arena);
  return {std::move(*plane), std::move(*arena), std::move(mates)};
}

std::future<Met> meet(World& world, const core::Config& config, std::uint32_t epoch) {
  return std::async(std::launch::async,
                    [&world, config, epoch] { return meet_here(world, config, epoch); });
}

std::vector<Met> meet_all(World& world, const std::function<void(core::Config&)>& change,
                          std::uint32_t epoch) {
  std::vector<std::future<Met>> starts;
  for (int rank = 0; rank < world.size(); ++rank) {
    core::Config config = world.config(rank);
    if (change) change(config);
    starts.push_back(meet(world, config, epoch));
  }
  std::vector<Met> met;
  for (auto& start : starts) {
    met.push_back(start.get());
    EXPECT_TRUE(met.back().mates) << met.back().mates.error().message;
  }
  return met;
}

std::vector<int> ranks_of(const Met& met) {
  std::vector<int> ranks;
  for (const Mate& mate : *met.mates) ranks.push_back(mate.rank);
  return ranks;
}

std::vector<int> ranks_in_memory(const Met& met) {
  std::vector<int> ranks;
  for (const Mate& mate : *met.mates) ranks.push_back(static_cast<int>(mate.arena.bytes()[0]));
  return ranks;
}

std::set<std::string> doors_of_this_process() {
  std::set<std::string> doors;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory)) {
    sockaddr_un address{};
    socklen_t length = sizeof(address);
    const int fd = std::atoi(entry->d_name);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    if (address.sun_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path) + 1) continue;
    doors.emplace(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  }
  ::closedir(directory);
  return doors;
}

}  // namespace fasthorovod::transport::testing
