// What ranks of one host say when they hand each other their arenas:
//
//   magic, version, job, epoch, rank, size, MAC        72 bytes, little endian
//
// The MAC is under the job secret and covers the rest, the name of the door at which the two meet
// (random, new for every start) and the rank it is meant for. So it fits one connection, one
// direction and one start. Immutable values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

inline constexpr std::uint32_t kMateVersion = 1;

struct MateHello {
  core::JobId job{};
  std::uint32_t epoch = 0;
  int rank = 0;  // who says it
  int size = 0;

  friend bool operator==(const MateHello&, const MateHello&) = default;
};

/// What the two ends of one connection know without being told.
struct MateRoute {
  std::string door;
  int to = 0;  // who is meant to hear it
};

std::vector<std::byte> encode(const MateHello& hello, const MateRoute& route, const Secret& secret);

/// kProtocol: not of this protocol and version. kAuthentication: the MAC is wrong.
core::Result<MateHello> decode_mate_hello(std::span<const std::byte> bytes, const MateRoute& route,
                                          const Secret& secret);

}  // namespace fasthorovod::transport
