// The launcher's store: a small authenticated key-value server through which ranks find rank 0.
//
// It speaks the handshake of handshake.h (purpose: store), then two requests: put a key, and get a
// key, which waits until somebody puts it. Keys and values are short (4 KiB); everything is
// bounded. It runs in a thread of its own and forgets everything when it goes. Thread: owner,
// except that it serves from its own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/log.h"
#include "core/result.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

class StoreServer {
 public:
  /// Listens at `address` (a literal IPv4 or IPv6 address) on a free port.
  static core::Result<std::unique_ptr<StoreServer>> start(const std::string& address,
                                                          const Secret& secret,
                                                          const core::JobId& job, core::Log& log);
  virtual ~StoreServer() = default;

  /// "host:port" or "[v6]:port": what workers get as FASTHOROVOD_STORE.
  [[nodiscard]] virtual std::string endpoint() const = 0;
};

}  // namespace fasthorovod::transport
