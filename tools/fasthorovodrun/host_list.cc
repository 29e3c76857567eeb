#include "tools/fasthorovodrun/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace fasthorovod::tools {
namespace {

constexpr int kMostSlots = 4096;

struct Entry {
  std::string_view text;
  std::size_t position;  // of its first character, counted from 1
};

core::Error entry_error(const Entry& entry, std::string_view problem) {
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("-H: '{}' at position {}: {}", entry.text, entry.position, problem)};
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

Entry trimmed(Entry entry) {
  while (!entry.text.empty() && is_blank(entry.text.front())) {
    entry.text.remove_prefix(1);
    ++entry.position;
  }
  while (!entry.text.empty() && is_blank(entry.text.back())) entry.text.remove_suffix(1);
  return entry;
}

std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Entry entry = trimmed({text.substr(begin, end - begin), begin + 1});
    if (!entry.text.empty()) entries.push_back(entry);
    begin = end + 1;
  }
  return entries;
}

std::optional<int> parse_slots(std::string_view text) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (slots < 1 || slots > kMostSlots) return std::nullopt;
  return slots;
}

struct NameAndRest {
  std::string_view name;
  std::string_view rest;  // "" or ":<slots>"
};

core::Result<NameAndRest> split_name(const Entry& entry) {
  const std::string_view text = entry.text;
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return entry_error(entry, "the bracket is not closed");
    return NameAndRest{text.substr(1, close - 1), text.substr(close + 1)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return NameAndRest{text, ""};
  if (text.find(':', colon + 1) != std::string_view::npos) {
    return entry_error(entry, "write an IPv6 address in brackets, as in [::1]:2");
  }
  return NameAndRest{text.substr(0, colon), text.substr(colon)};
}

core::Result<Host> parse_entry(const Entry& entry) {
  const core::Result<NameAndRest> parts = split_name(entry);
  if (!parts) return parts.error();
  if (parts->name.empty()) return entry_error(entry, "the name is missing");
  if (parts->rest.empty()) return Host{std::string(parts->name), 1};
  if (parts->rest.front() != ':') return entry_error(entry, "expected ':' after the bracket");
  const std::optional<int> slots = parse_slots(parts->rest.substr(1));
  if (!slots) {
    return entry_error(entry, fmt::format("the number of slots must be 1 to {}", kMostSlots));
  }
  return Host{std::string(parts->name), *slots};
}

bool equal_names(std::string_view a, std::string_view b) {
  if (a.ends_with('.')) a.remove_suffix(1);
  if (b.ends_with('.')) b.remove_suffix(1);
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

core::Result<std::vector<Host>> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  for (const Entry& entry : entries_of(text)) {
    core::Result<Host> host = parse_entry(entry);
    if (!host) return std::move(host).error();
    const bool repeated = std::ranges::any_of(
        hosts, [&](const Host& other) { return equal_names(other.name, host->name); });
    if (repeated) return entry_error(entry, "this host is listed twice");
    hosts.push_back(std::move(*host));
  }
  if (hosts.empty()) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       fmt::format("-H: no host in '{}'; write it as localhost:4", text)};
  }
  return hosts;
}

bool is_local_name(std::string_view name, std::string_view own_name) {
  if (name.starts_with("127.") || name == "::1" || equal_names(name, "localhost")) return true;
  if (own_name.empty()) return false;
  return equal_names(name, own_name) || equal_names(name, own_name.substr(0, own_name.find('.')));
}

}  // namespace fasthorovod::tools
