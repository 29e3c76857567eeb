// What an operation's owner hears of its end.
#pragma once

#include <string_view>

#include "core/result.h"

namespace fasthorovod::ops {

/// A verdict that ends all operations does not say which: puts the operation's title before an
/// error that does not name it.
core::Status outcome_of(std::string_view title, core::Status status);

}  // namespace fasthorovod::ops
