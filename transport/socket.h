// TCP sockets as every connection of ours has them: non-blocking, closed on exec, dropped in forked
// children, without Nagle's delay, and with a peer that is silent for ten seconds taken for dead.
// Stateless; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/config.h"
#include "core/result.h"
#include "transport/endpoint.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

/// Listens at exactly `endpoint` (port 0: any free one). A port in TIME_WAIT is no obstacle; one
/// that is taken is kUnavailable.
core::Result<FileDescriptor> listen_at(const Endpoint& endpoint, int backlog);

/// Takes one waiting connection. An invalid descriptor: nobody is waiting now.
core::Result<FileDescriptor> accept_one(int listener);

/// Begins to connect; the socket becomes writable when that is decided.
core::Result<FileDescriptor> begin_connect(const Endpoint& endpoint);

/// How begin_connect ended, once the socket is writable.
core::Status finish_connect(int fd, const Endpoint& endpoint);

/// Limits what the socket sends, by the kernel's pacing.
core::Status set_pacing(int fd, core::BytesPerSecond rate);

/// How long the kernel waits for acknowledgements before it ends the connection; 10 s unless set. A
/// peer that acknowledges but reads nothing (its window is closed) counts as silent, too.
core::Status set_silence_limit(int fd, std::chrono::milliseconds limit);

/// How long the peer's kernel has acknowledged nothing while bytes of ours are on their way; zero
/// when none are. A peer that merely does not read keeps answering probes, so this tells a dead one
/// from a slow one.
std::chrono::milliseconds unanswered_for(int fd);

std::optional<Endpoint> local_endpoint(int fd);
std::optional<Endpoint> remote_endpoint(int fd);

}  // namespace fasthorovod::transport
