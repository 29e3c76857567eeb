// Type and reduction as the one number that travels to a lane in another process (Arrival::how),
// and what that lane does with it. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/data_type.h"
#include "core/reduction.h"

namespace fasthorovod::ops {

[[nodiscard]] std::uint16_t how_to_add(core::DataType type, core::Reduction reduction);

/// Reduces `piece` into `to`. False, and nothing is touched, when `how` names no type or reduction,
/// or the sizes differ or cut an element.
[[nodiscard]] bool add_as(std::uint16_t how, std::span<std::byte> to,
                          std::span<const std::byte> piece);

}  // namespace fasthorovod::ops
