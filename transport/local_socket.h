// Sockets between processes of one host: Unix sockets with abstract names, which carry whole
// messages and descriptors with them. Every user of the network namespace can see such a name and
// dial it, so both ends look who the other one is. The name is gone with its socket; nothing is
// left in any file system. Non-blocking, closed on exec, dropped in forked children.
//
// Stateless; any thread.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

inline constexpr std::size_t kMaxLocalName = 100;

core::Result<FileDescriptor> listen_locally(const std::string& name);

/// kPeerLost: nobody listens there, in this network namespace. kUnavailable: too many wait at that
/// door; it may work later.
core::Result<FileDescriptor> dial_locally(const std::string& name);

/// Whose process dialled, or listened, at the other end.
core::Result<ucred> user_of(int fd);

/// Only processes of one effective user hand each other memory: `own` and that of `other`. Root is
/// a user like the rest.
core::Status check_user(const ucred& other, uid_t own);

/// A message with a descriptor.
struct Parcel {
  std::vector<std::byte> message;
  FileDescriptor content;
};

inline constexpr std::size_t kMaxParcelMessage = 256;

core::Status send_parcel(int fd, std::span<const std::byte> message, int content);

/// Nothing when none is there yet. kPeerLost: the other side ended the connection. kProtocol: what
/// came is longer than a parcel, or holds none or several descriptors; those are closed.
core::Result<std::optional<Parcel>> receive_parcel(int fd);

}  // namespace fasthorovod::transport
