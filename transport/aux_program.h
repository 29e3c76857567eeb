// Where the program of auxiliaries lies. Thread: any.
#pragma once

#include <string>

#include "core/result.h"

namespace fasthorovod::transport {

/// Beside the module that this code is part of, beside the running program, or on PATH, in this
/// order. kUnavailable when it is in none of them; the message says where it was looked for.
core::Result<std::string> find_aux_program();

}  // namespace fasthorovod::transport
