#include "transport/refusals.h"

#include <fmt/format.h>

namespace fasthorovod::transport {
namespace {

constexpr auto kLogEvery = std::chrono::minutes(1);
constexpr std::size_t kMaxSources = 256;

}  // namespace

void RefusalLog::add(RefusalCause cause, const std::string& source, const std::string& why,
                     core::TimePoint now) {
  counts_[static_cast<std::size_t>(cause)].fetch_add(1, std::memory_order_relaxed);
  Source* entry = source_to_log(source, now);
  if (entry == nullptr) return;
  const std::string more =
      entry->silent == 0 ? "" : fmt::format(" ({} more since the last line)", entry->silent);
  const std::string line = fmt::format("refused a connection from {}: {}{}", source, why, more);
  entry->silent = 0;
  entry->logged = now;
  // A rank that is one world ahead knocks until this one has come along; nobody needs to hear of
  // it.
  if (cause == RefusalCause::kEpoch) {
    log_.info(line);
  } else {
    log_.warning(line);
  }
}

RefusalLog::Source* RefusalLog::source_to_log(const std::string& name, core::TimePoint now) {
  if (const auto found = sources_.find(name); found != sources_.end()) {
    if (now - found->second.logged >= kLogEvery) return &found->second;
    ++found->second.silent;
    return nullptr;
  }
  if (sources_.size() >= kMaxSources) {
    std::erase_if(sources_,
                  [&](const auto& each) { return now - each.second.logged >= kLogEvery; });
    if (sources_.size() >= kMaxSources) return nullptr;
  }
  return &sources_[name];
}

Refusals RefusalLog::counts() const {
  const auto count = [this](RefusalCause cause) {
    return counts_[static_cast<std::size_t>(cause)].load(std::memory_order_relaxed);
  };
  return {.secret = count(RefusalCause::kSecret),
          .job = count(RefusalCause::kJob),
          .version = count(RefusalCause::kVersion),
          .epoch = count(RefusalCause::kEpoch),
          .rank = count(RefusalCause::kRank),
          .garbage = count(RefusalCause::kGarbage),
          .slow = count(RefusalCause::kSlow),
          .user = count(RefusalCause::kUser)};
}

}  // namespace fasthorovod::transport
