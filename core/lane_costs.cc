#include "core/lane_costs.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "core/setting_kinds.h"

namespace fasthorovod::core {
namespace {

constexpr std::array<std::pair<std::string_view, double ByteCosts::*>, 7> kByteCosts{{
    {"send", &ByteCosts::send},
    {"receive", &ByteCosts::receive},
    {"receive_scratch", &ByteCosts::receive_scratch},
    {"add", &ByteCosts::add},
    {"copy", &ByteCosts::copy},
    {"send_call", &ByteCosts::send_call},
    {"receive_call", &ByteCosts::receive_call},
}};
constexpr std::array<std::pair<std::string_view, double LaneCosts::*>, 5> kOtherCosts{{
    {"cache", &LaneCosts::cache},
    {"turn", &LaneCosts::turn},
    {"look", &LaneCosts::look},
    {"hop", &LaneCosts::hop},
    {"share", &LaneCosts::share},
}};

using Fields = std::vector<std::pair<std::string, double*>>;

void add_fields(std::string_view setting, QueueCosts& costs, Fields& fields) {
  for (const auto& [name, field] : kByteCosts) {
    fields.emplace_back(fmt::format("{}.close.{}", setting, name), &(costs.close.*field));
    fields.emplace_back(fmt::format("{}.far.{}", setting, name), &(costs.far.*field));
  }
}

Fields fields_of(LaneCosts& costs) {
  Fields fields;
  add_fields("alone", costs.alone, fields);
  if (costs.busy) add_fields("busy", *costs.busy, fields);
  if (costs.hungry) add_fields("hungry", *costs.hungry, fields);
  for (const auto& [name, field] : kOtherCosts) fields.emplace_back(name, &(costs.*field));
  return fields;
}

std::optional<std::map<std::string, double>> values_in(std::string_view text) {
  std::map<std::string, double> values;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t space = text.substr(0, end).find(' ');
    if (end == std::string_view::npos || space == std::string_view::npos) return std::nullopt;
    const auto value = parse_decimal(text.substr(space + 1, end - space - 1));
    if (!value || !values.emplace(text.substr(0, space), *value).second) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return values;
}

}  // namespace

LaneCosts typical_costs() {
  const ByteCosts close{.send = 0.11,
                        .receive = 0.060,
                        .receive_scratch = 0.022,
                        .add = 0.044,
                        .copy = 0.033,
                        .send_call = 3200,
                        .receive_call = 2900};
  const ByteCosts far{.send = 0.25,
                      .receive = 0.087,
                      .receive_scratch = 0.039,
                      .add = 0.044,
                      .copy = 0.033,
                      .send_call = 2700,
                      .receive_call = 2800};
  return {.alone = {close, far},
          .cache = 1 << 20,
          .turn = 160,
          .look = 260,
          .hop = 15'000,
          .share = 0.5};
}

std::string to_text(const LaneCosts& costs) {
  LaneCosts copy = costs;
  std::string text;
  for (const auto& [name, value] : fields_of(copy)) text += fmt::format("{} {}\n", name, *value);
  return text;
}

std::optional<LaneCosts> costs_from_text(std::string_view text) {
  const auto values = values_in(text);
  if (!values) return std::nullopt;
  LaneCosts costs;
  if (values->contains("busy.close.send")) costs.busy.emplace();
  if (values->contains("hungry.close.send")) costs.hungry.emplace();
  const Fields fields = fields_of(costs);
  if (fields.size() != values->size()) return std::nullopt;
  for (const auto& [name, field] : fields) {
    const auto found = values->find(name);
    if (found == values->end()) return std::nullopt;
    *field = found->second;
  }
  return costs;
}

}  // namespace fasthorovod::core
