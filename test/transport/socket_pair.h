// Connected sockets for tests, and blocking reads and writes on one end of them. All are bounded by
// a time limit on the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

enum class SocketKind : std::uint8_t { kUnix, kTcp };

using SocketPair = std::pair<FileDescriptor, FileDescriptor>;

/// `buffer_bytes` bounds send and receive buffers of both ends; 0 leaves them as they are.
SocketPair connected_pair(SocketKind kind, int buffer_bytes = 0);

/// False when the peer is gone or nothing moved for a generous time.
bool write_all(const FileDescriptor& socket, std::span<const std::byte> bytes);

/// What came until `size` bytes are there, the peer ended, or nothing came for a generous time.
std::vector<std::byte> read_up_to(const FileDescriptor& socket, std::size_t size);

/// Closes with a reset.
void reset(FileDescriptor socket);

}  // namespace fasthorovod::transport
