// Mixes numbers into a fingerprint. The finalizer of splitmix64: each input bit reaches each output
// bit, unlike a plain multiplication, so counts that differ by powers of two do not collide. The
// same on every machine. Thread: owner.
#pragma once

#include <cstdint>

namespace fasthorovod::core {

class Mixer final {
 public:
  void add(std::uint64_t value) {
    state_ += 0x9E3779B97F4A7C15u ^ value;
    state_ = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9u;
    state_ = (state_ ^ (state_ >> 27)) * 0x94D049BB133111EBu;
    state_ ^= state_ >> 31;
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }
  [[nodiscard]] std::uint32_t folded() const {
    return static_cast<std::uint32_t>(state_ ^ (state_ >> 32));
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace fasthorovod::core
