#include "core/setting_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/processor_list.h"

namespace fasthorovod::core {

namespace {

// Names the largest rate on purpose far above any network: it only keeps the arithmetic exact.
constexpr double kMostBytesPerSecond = 1e15;

double prefix_factor(char prefix) {
  switch (std::tolower(static_cast<unsigned char>(prefix))) {
    case 'k':
      return 1e3;
    case 'm':
      return 1e6;
    case 'g':
      return 1e9;
    case 't':
      return 1e12;
    default:
      return 0;
  }
}

// The bytes a second of one such unit, or 0 when it is none. "mb" and "mbps" are refused: some mean
// bits by them, some bytes.
double rate_unit(std::string_view unit) {
  double factor = 1;
  if (unit.size() > 1 && prefix_factor(unit.front()) > 0) {
    factor = prefix_factor(unit.front());
    unit.remove_prefix(1);
  }
  if (unit == "B") return factor;
  if (unit == "bit" || unit == "Bit" || unit == "BIT") return factor / 8;
  return 0;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || std::signbit(value)) return std::nullopt;
  return value;
}

bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.front() == '[') return host.size() > 2 && host.back() == ']';
  return host.find(':') == std::string_view::npos;
}

bool is_congestion_name(std::string_view text) {
  constexpr std::size_t kMost = 15;  // TCP_CA_NAME_MAX with its end
  return text.size() <= kMost && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-';
         });
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isxdigit(c) != 0;
         });
}

Result<BytesPerSecond> parse_rate(std::string_view text) {
  if (text == "0") return BytesPerSecond{0};
  const std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits != std::string_view::npos) {
    const auto number = parse_decimal(text.substr(0, digits));
    const double unit = rate_unit(text.substr(digits));
    const double rate = number.value_or(0) * unit;
    if (number && unit > 0 && (*number == 0 || rate >= 1) && rate <= kMostBytesPerSecond) {
      return static_cast<BytesPerSecond>(std::llround(rate));
    }
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("\"{}\" is not a rate such as 200mbit, 1gbit or 25MB", text)};
}

SettingParser seconds_setting(std::chrono::milliseconds Config::*field, double least, double most) {
  return [=](std::string_view text, Config& config) {
    const auto value = parse_decimal(text);
    if (!value || *value < least || *value > most) return false;
    config.*field = std::chrono::milliseconds(std::llround(*value * 1000));
    return true;
  };
}

SettingParser flag_setting(bool Config::*field) {
  return [field](std::string_view text, Config& config) {
    if (text != "0" && text != "1") return false;
    config.*field = text == "1";
    return true;
  };
}

SettingParser text_setting(std::string Config::*field) {
  return text_setting(field, [](std::string_view) { return true; });
}

SettingParser text_setting(std::string Config::*field, std::function<bool(std::string_view)> test) {
  return [field, test = std::move(test)](std::string_view text, Config& config) {
    if (!test(text)) return false;
    config.*field = text;
    return true;
  };
}

SettingParser aux_pinning_setting(AuxPinning Config::*field) {
  return [field](std::string_view text, Config& config) {
    AuxPinning& pinning = config.*field;
    if (text == "auto" || text == "none") {
      pinning = {.kind = text == "auto" ? AuxPinning::Kind::kAuto : AuxPinning::Kind::kNone};
      return true;
    }
    auto processors = parse_processor_list(text);
    if (!processors) return false;
    pinning = {.kind = AuxPinning::Kind::kList, .processors = *std::move(processors)};
    return true;
  };
}

SettingParser rate_setting(BytesPerSecond Config::*field) {
  return [field](std::string_view text, Config& config) {
    const auto rate = parse_rate(text);
    if (!rate) return false;
    config.*field = *rate;
    return true;
  };
}

SettingParser data_plane_setting(DataPlane Config::*field) {
  return [field](std::string_view text, Config& config) {
    for (const DataPlane plane : {DataPlane::kTcp, DataPlane::kMpi}) {
      if (text != to_string(plane)) continue;
      config.*field = plane;
      return true;
    }
    return false;
  };
}

SettingParser allreduce_setting(std::optional<AllreduceAlgorithm> Config::*field) {
  return [field](std::string_view text, Config& config) {
    config.*field = parse_allreduce_algorithm(text);
    return (config.*field).has_value() || text == "auto";
  };
}

SettingParser log_level_setting(LogLevel Config::*field) {
  return [field](std::string_view text, Config& config) {
    const auto level = log_level_from_name(text);
    if (!level) return false;
    config.*field = *level;
    return true;
  };
}

}  // namespace fasthorovod::core
