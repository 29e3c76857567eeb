// Counts refused connections by cause, and logs them once a minute and source.
//
// Thread: owner, except counts() for any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "core/clock.h"
#include "core/log.h"
#include "transport/control_plane.h"

namespace fasthorovod::transport {

enum class RefusalCause : std::uint8_t {
  kSecret,
  kJob,
  kVersion,
  kEpoch,
  kRank,
  kGarbage,
  kSlow,
  kUser
};
inline constexpr std::size_t kRefusalCauses = 8;

class RefusalLog final {
 public:
  explicit RefusalLog(core::Log& log) : log_(log) {}

  /// `source` is an address without its port, `why` a sentence for people.
  void add(RefusalCause cause, const std::string& source, const std::string& why,
           core::TimePoint now);

  [[nodiscard]] Refusals counts() const;

 private:
  struct Source {
    core::TimePoint logged;
    std::uint64_t silent = 0;  // refused since then, without a line
  };
  Source* source_to_log(const std::string& name, core::TimePoint now);

  core::Log& log_;
  std::array<std::atomic<std::uint64_t>, kRefusalCauses> counts_{};
  std::map<std::string, Source> sources_;  // bounded
};

}  // namespace fasthorovod::transport
