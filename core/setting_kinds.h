// How the text of a setting becomes a value, by kind. A row of the table in config.cc names a kind,
// the field it fills and the bounds; nothing here knows a setting's name.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/config.h"

namespace fasthorovod::core {

/// Puts the value of a text into a configuration, or returns false when the text is not allowed.
using SettingParser = std::function<bool(std::string_view text, Config& config)>;

/// A whole decimal number that fits, without sign for zero and above; nothing else around it.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// A finite decimal number, at least zero, such as "0.5" or "60".
std::optional<double> parse_decimal(std::string_view text);

/// host:port with a port of 1 to 65535; an IPv6 address stands in brackets.
bool is_host_and_port(std::string_view text);

/// Could be the name of a congestion control; whether there is one, the system knows.
bool is_congestion_name(std::string_view text);

bool is_hex(std::string_view text, std::size_t digits);

/// An integer between two bounds, both allowed.
template <typename T>
SettingParser integer_setting(T Config::*field, std::int64_t least, std::int64_t most) {
  return [=](std::string_view text, Config& config) {
    const auto value = parse_integer(text);
    if (!value || *value < least || *value > most) return false;
    config.*field = static_cast<T>(*value);
    return true;
  };
}

/// "auto", which keeps the default, or an integer.
template <typename T>
SettingParser integer_or_auto_setting(T Config::*field, std::int64_t least, std::int64_t most) {
  return [=, number = integer_setting(field, least, most)](std::string_view text, Config& config) {
    return text == "auto" || number(text, config);
  };
}

/// Seconds with a fraction, between two bounds.
SettingParser seconds_setting(std::chrono::milliseconds Config::*field, double least, double most);

/// "0" or "1".
SettingParser flag_setting(bool Config::*field);

/// Any text, or one that passes a test.
SettingParser text_setting(std::string Config::*field);
SettingParser text_setting(std::string Config::*field, std::function<bool(std::string_view)> test);

/// "auto", "none", or a list of processors.
SettingParser aux_pinning_setting(AuxPinning Config::*field);

SettingParser rate_setting(BytesPerSecond Config::*field);
SettingParser data_plane_setting(DataPlane Config::*field);
SettingParser allreduce_setting(std::optional<AllreduceAlgorithm> Config::*field);
SettingParser log_level_setting(LogLevel Config::*field);

}  // namespace fasthorovod::core
