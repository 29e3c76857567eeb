// Torch's store as the place where ranks meet. This library's keys there begin with its name.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "core/clock.h"
#include "core/result.h"
#include "transport/key_value_store.h"

namespace fasthorovod::torch_binding {

/// How long until the deadline, at least a millisecond.
std::chrono::milliseconds until(core::TimePoint deadline);

/// Thread: as the store's. What torch throws comes back as an Error.
class TorchStore final : public transport::KeyValueStore {
 public:
  TorchStore(c10::intrusive_ptr<c10d::Store> store, const std::string& prefix);

  core::Status put(const std::string& key, const std::string& value,
                   core::TimePoint deadline) override;
  core::Result<std::string> get(const std::string& key, core::TimePoint deadline) override;

  /// What is there now, without waiting.
  core::Result<std::optional<std::string>> find(const std::string& key);

  /// Takes a key away, if it is there and the store can.
  void remove(const std::string& key);

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  std::string prefix_;
};

/// The store below the first `prefixes` prefixes of another (or below as many as there are).
c10::intrusive_ptr<c10d::Store> store_below(c10::intrusive_ptr<c10d::Store> store, int prefixes);

/// host:port of the store, or "" when it says nothing about the way to the other ranks.
std::string place_of(const c10::intrusive_ptr<c10d::Store>& store);

}  // namespace fasthorovod::torch_binding
