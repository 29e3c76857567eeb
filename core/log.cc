#include "core/log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace fasthorovod::core {

namespace {

constexpr std::array<std::string_view, 6> kNames{"trace",   "debug", "info",
                                                 "warning", "error", "off"};

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::string_view to_string(LogLevel level) { return kNames.at(static_cast<std::size_t>(level)); }

std::optional<LogLevel> log_level_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (equal_without_case(name, kNames[i])) return static_cast<LogLevel>(i);
  }
  // Horovod's highest level. Nothing of ours is fatal, so it silences us.
  if (equal_without_case(name, "fatal")) return LogLevel::kOff;
  return std::nullopt;
}

Log::Log(LogLevel threshold, Sink sink) : threshold_(threshold), sink_(std::move(sink)) {}

void Log::write(LogLevel level, std::string_view line) {
  if (!enabled(level) || !sink_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  sink_(level, line);
}

}  // namespace fasthorovod::core
