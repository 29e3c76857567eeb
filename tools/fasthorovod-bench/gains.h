// The table of what auxiliaries add, by the model (core/placement_model.h). Pure.
#pragma once

#include <string>

#include "core/lane_costs.h"

namespace fasthorovod::tools {

/// Markdown: Gbit/s that a host of 16 cores carries each way, by its link, its ranks, where their
/// tensors lie, and the auxiliaries a rank; and how many `auto` takes.
std::string gains_table(const core::LaneCosts& costs);

}  // namespace fasthorovod::tools
