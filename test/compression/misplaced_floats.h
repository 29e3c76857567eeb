// Floats at an address that no vector is aligned to, with a guard on either side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace fasthorovod::compression {

class MisplacedFloats {
 public:
  MisplacedFloats(const std::vector<float>& values, std::size_t offset)
      : offset_(offset + 1), memory_(offset_ + values.size() + 1, kGuard) {
    std::ranges::copy(values, memory_.begin() + static_cast<std::ptrdiff_t>(offset_));
  }

  std::span<float> span() {
    return std::span(memory_).subspan(offset_, memory_.size() - offset_ - 1);
  }
  [[nodiscard]] std::vector<float> values() const {
    return {memory_.begin() + static_cast<std::ptrdiff_t>(offset_), memory_.end() - 1};
  }
  [[nodiscard]] bool is_guarded() const {
    return memory_[offset_ - 1] == kGuard && memory_.back() == kGuard;
  }

 private:
  static constexpr float kGuard = 12345.0F;
  std::size_t offset_;
  std::vector<float> memory_;
};

}  // namespace fasthorovod::compression
