// A store over MPI: what rank 0 puts reaches the get() of every other rank. Thread: owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "transport/key_value_store.h"
#include "transport/mpi_mail.h"

namespace fasthorovod::transport {

class MpiStore final : public KeyValueStore {
 public:
  /// What was put under another number, in an attempt that was given up, is not found.
  MpiStore(MpiMail& mail, std::uint64_t attempt) : mail_(mail), attempt_(attempt) {}

  /// Rank 0 only.
  core::Status put(const std::string& key, const std::string& value,
                   core::TimePoint deadline) override;
  core::Result<std::string> get(const std::string& key, core::TimePoint deadline) override;

 private:
  core::Status take_in();

  MpiMail& mail_;
  const std::uint64_t attempt_;
  std::map<std::string, std::string> values_;
};

}  // namespace fasthorovod::transport
