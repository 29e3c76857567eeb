// Talks to the launcher's store. Blocking, with a deadline for each call; used before there is an
// engine.
//
// Thread: owner.
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "core/world.h"
#include "transport/endpoint.h"
#include "transport/key_value_store.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

class StoreClient final : public KeyValueStore {
 public:
  /// Finds the store at "host:port"; tries again until `deadline`, except when it refuses for good.
  /// The secret outlives the client.
  static core::Result<std::unique_ptr<StoreClient>> connect(const std::string& where,
                                                            const Secret& secret,
                                                            const core::JobId& job, int rank,
                                                            core::TimePoint deadline);
  ~StoreClient() override;
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  core::Status put(const std::string& key, const std::string& value,
                   core::TimePoint deadline) override;
  core::Result<std::string> get(const std::string& key, core::TimePoint deadline) override;

  /// Where the store was reached.
  [[nodiscard]] const Endpoint& endpoint() const;

 private:
  class Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fasthorovod::transport
