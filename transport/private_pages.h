// Takes memory back from other processes that have mapped it. Thread: any.
#pragma once

#include <cstddef>
#include <span>

#include "core/result.h"

namespace fasthorovod::transport {

/// Maps memory of this process alone in place of `pages`, whole pages of a shared mapping, with the
/// same contents: from then on nobody sees what the other writes there. kUnavailable when the
/// system has no room; then nothing has changed. What nobody else in this process writes meanwhile
/// is kept.
core::Status make_private(std::span<std::byte> pages);

}  // namespace fasthorovod::transport
