// Bytes as text of hexadecimal digits.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fasthorovod::torch_binding {

std::string hex(std::span<const std::byte> bytes);

}  // namespace fasthorovod::torch_binding
