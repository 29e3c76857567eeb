// What a rank and one of its auxiliaries say to each other besides chunks, over a pair of Unix
// sockets: few messages, some with descriptors. The end of the connection is the end of the
// auxiliary.
//
// Thread: any; one receiver at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/processor_list.h"
#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

struct AuxMessage {
  enum class Kind : std::uint32_t {
    kHello = 1,        // auxiliary: it runs, as `build`
    kCannotStart = 2,  // the forked child: no program came of it; `number` is the errno
    kAttach = 3,       // rank: serve a lane. Descriptors: arena, the rank's bell, the lane's bell
    kFlow = 4,         // rank: `flow` to rank `number`. Descriptor: the socket
    kDetach = 5,       // rank: close all flows in good order, and let go of the arena
    kDetached = 6,     // auxiliary: done
    kBind = 7,         // rank, between lanes: run on `processors`; on none: where it was started
    kBound = 8,        // auxiliary: the answer; `number` is the errno, or 0
  };
  static constexpr std::size_t kBuild = 16;

  Kind kind{};
  std::int32_t number = 0;
  std::uint32_t flow = 0;
  std::array<char, kBuild> build{};
  std::uint64_t mailbox = 0;        // kAttach: where in the arena
  std::int32_t notsent_lowat = 0;   // kAttach: LaneOptions
  std::int32_t close_limit_ms = 0;  // kAttach: LaneOptions
  std::array<std::uint64_t, core::kMostProcessors / 64> processors{};  // kBind: a bit each
};

struct AuxReceived {
  AuxMessage message;
  std::vector<FileDescriptor> descriptors;
};

class AuxSocket final {
 public:
  static constexpr std::size_t kMostDescriptors = 3;

  explicit AuxSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  /// Both ends; neither survives exec.
  static core::Result<std::pair<FileDescriptor, FileDescriptor>> pair();

  /// Never waits. The descriptors stay the caller's.
  core::Status send(const AuxMessage& message, std::span<const int> descriptors = {}) const;

  /// The next message; nothing when the other side is gone, or none came within the limit.
  core::Result<std::optional<AuxReceived>> receive(
      std::optional<std::chrono::milliseconds> limit) const;

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  FileDescriptor socket_;
};

}  // namespace fasthorovod::transport
