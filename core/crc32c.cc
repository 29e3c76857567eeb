#include "core/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fasthorovod::core {

namespace {

// Bits are taken lowest first, so the polynomial is written in reverse.
constexpr std::uint32_t kReversedPolynomial = 0x82F63B78u;

// kTables[k][b]: the effect of byte b when k more bytes follow it. Eight of them take eight bytes a
// step, which hides the latency of a look-up a byte.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1u) != 0 ? kReversedPolynomial : 0u);
    }
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xFFu];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint32_t table_step(std::uint32_t crc, std::byte byte) noexcept {
  return (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFFu];
}

std::uint32_t table_step_8(std::uint32_t crc, const std::byte* bytes) noexcept {
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint32_t byte = std::to_integer<std::uint32_t>(bytes[i]);
    if (i < 4) byte ^= (crc >> (8 * i)) & 0xFFu;
    result ^= kTables[7 - i][byte];
  }
  return result;
}

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  std::uint32_t crc = ~previous;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) crc = table_step_8(crc, at);
  for (; left > 0; --left, ++at) crc = table_step(crc, *at);
  return ~crc;
}

#if defined(__x86_64__)

bool has_crc32c_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(
    std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  std::uint64_t crc = static_cast<std::uint32_t>(~previous);
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<unsigned char>(*at));
  return ~narrow;
}

#else

bool has_crc32c_instruction() noexcept { return false; }

std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                    std::uint32_t previous) noexcept {
  return crc32c_by_table(bytes, previous);
}

#endif

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  static const bool by_instruction = has_crc32c_instruction();
  return by_instruction ? crc32c_by_instruction(bytes, previous) : crc32c_by_table(bytes, previous);
}

}  // namespace fasthorovod::core
