#include "tools/fasthorovodrun/environment.h"

#include <fmt/format.h>

#include <algorithm>

namespace fasthorovod::tools {
namespace {

void add_place(const Place& place, Overrides& variables) {
  const std::string rank = std::to_string(place.rank);
  const std::string size = std::to_string(place.size);
  variables.insert(variables.end(), {{"FASTHOROVOD_RANK", rank},
                                     {"FASTHOROVOD_SIZE", size},
                                     {"HOROVOD_RANK", rank},
                                     {"HOROVOD_SIZE", size},
                                     {"HOROVOD_LOCAL_RANK", std::to_string(place.local_rank)},
                                     {"HOROVOD_LOCAL_SIZE", std::to_string(place.local_size)},
                                     {"HOROVOD_CROSS_RANK", std::to_string(place.cross_rank)},
                                     {"HOROVOD_CROSS_SIZE", std::to_string(place.cross_size)},
                                     {"HOROVOD_HOSTNAME", place.host}});
}

void add_options(const Place& place, const Options& options, Overrides& variables) {
  if (options.virtual_hosts > 0) variables.emplace_back("FASTHOROVOD_HOST_IDENTITY", place.host);
  if (!options.virtual_rate.empty()) {
    variables.emplace_back("FASTHOROVOD_FLOW_RATE", options.virtual_rate);
  }
  if (!options.network_interface.empty()) {
    variables.emplace_back("FASTHOROVOD_NETWORK_INTERFACE", options.network_interface);
  }
  if (options.start_timeout_s > 0) {
    variables.emplace_back("FASTHOROVOD_START_TIMEOUT", std::to_string(options.start_timeout_s));
  }
}

}  // namespace

Overrides rank_variables(const Place& place, const JobContact& contact, const Options& options) {
  Overrides variables{{"FASTHOROVOD_STORE", contact.store},
                      {"FASTHOROVOD_SECRET_FILE", contact.secret_file},
                      {"FASTHOROVOD_JOB", contact.job},
                      {"PYTHONUNBUFFERED", "1"}};
  add_place(place, variables);
  add_options(place, options, variables);
  return variables;
}

std::vector<std::string> worker_environment(const std::vector<std::string>& inherited,
                                            const Overrides& overrides) {
  std::vector<std::string> result;
  for (const std::string& entry : inherited) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    const bool replaced =
        name == "FASTHOROVOD_RENDEZVOUS" ||
        std::ranges::any_of(overrides, [&](const auto& pair) { return pair.first == name; });
    if (!replaced) result.push_back(entry);
  }
  for (const auto& [name, value] : overrides) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

}  // namespace fasthorovod::tools
