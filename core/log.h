// The library logs through this and never prints. The sink decides where lines go (standard error
// in programs, a vector in tests). Thread: any; the sink is called under a lock, one line at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

namespace fasthorovod::core {

enum class LogLevel : std::uint8_t { kTrace = 0, kDebug, kInfo, kWarning, kError, kOff };

std::string_view to_string(LogLevel level);
std::optional<LogLevel> log_level_from_name(std::string_view name);  // case does not matter

class Log final {
 public:
  using Sink = std::function<void(LogLevel, std::string_view line)>;

  Log(LogLevel threshold, Sink sink);

  void trace(std::string_view line) { write(LogLevel::kTrace, line); }
  void debug(std::string_view line) { write(LogLevel::kDebug, line); }
  void info(std::string_view line) { write(LogLevel::kInfo, line); }
  void warning(std::string_view line) { write(LogLevel::kWarning, line); }
  void error(std::string_view line) { write(LogLevel::kError, line); }

  [[nodiscard]] bool enabled(LogLevel level) const { return level >= threshold_; }

 private:
  void write(LogLevel level, std::string_view line);

  const LogLevel threshold_;
  const Sink sink_;
  std::mutex mutex_;
};

}  // namespace fasthorovod::core
