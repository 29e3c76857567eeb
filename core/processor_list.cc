#include "core/processor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace fasthorovod::core {
namespace {

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value >= kMostProcessors) return std::nullopt;
  return value;
}

// "4" or "4-7".
bool add_range(std::string_view text, std::vector<int>& processors) {
  const std::size_t dash = text.find('-');
  const auto first = number_of(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_of(text.substr(dash + 1));
  if (!first || !last || *last < *first) return false;
  for (int processor = *first; processor <= *last; ++processor) {
    if (std::ranges::find(processors, processor) != processors.end()) return false;
    processors.push_back(processor);
  }
  return true;
}

}  // namespace

std::optional<std::vector<int>> parse_processor_list(std::string_view text) {
  std::vector<int> processors;
  while (true) {
    const std::size_t comma = text.find(',');
    if (!add_range(text.substr(0, comma), processors)) return std::nullopt;
    if (comma == std::string_view::npos) return processors;
    text.remove_prefix(comma + 1);
  }
}

std::string to_processor_list(std::span<const int> processors) {
  std::string text;
  for (std::size_t first = 0; first < processors.size();) {
    std::size_t end = first + 1;
    while (end < processors.size() && processors[end] == processors[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", processors[first]);
    if (end - first > 1) text += fmt::format("-{}", processors[end - 1]);
    first = end;
  }
  return text;
}

}  // namespace fasthorovod::core
