#include "core/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace fasthorovod::core {
namespace {

using Bytes = std::vector<std::byte>;

Bytes repeated(unsigned value, std::size_t count) { return Bytes(count, std::byte(value)); }

struct Known {
  Bytes bytes;
  std::uint32_t sum;
};

// The check value of the catalogue of CRCs and the vectors of RFC 3720, section B.4.
std::vector<Known> known_sums() {
  Bytes up;
  Bytes down;
  for (unsigned i = 0; i < 32; ++i) {
    up.push_back(std::byte(i));
    down.push_back(std::byte(31 - i));
  }
  const auto digits = std::as_bytes(std::span(std::string_view("123456789")));
  return {{{}, 0},
          {{digits.begin(), digits.end()}, 0xE3069283u},
          {repeated(0, 32), 0x8A9136AAu},
          {repeated(0xFF, 32), 0x62A8AB43u},
          {up, 0x46DD794Eu},
          {down, 0x113FDB5Cu}};
}

TEST(Crc32c, TableGivesTheKnownSums) {
  for (const Known& known : known_sums()) EXPECT_EQ(crc32c_by_table(known.bytes, 0), known.sum);
}

TEST(Crc32c, InstructionGivesTheKnownSums) {
  if (!has_crc32c_instruction()) GTEST_SKIP() << "this processor has no such instruction";
  for (const Known& known : known_sums()) {
    EXPECT_EQ(crc32c_by_instruction(known.bytes, 0), known.sum);
  }
}

TEST(Crc32c, IsTheSameByEitherWayInAnyPartsAndAlignment) {
  std::mt19937 random(1);
  Bytes data(600);
  for (std::byte& byte : data) byte = std::byte(random() & 0xFFu);
  for (std::size_t length = 0; length < 300; ++length) {
    const auto bytes = std::span(data).subspan(length % 9, length);
    const std::uint32_t whole = crc32c_by_table(bytes, 0);
    if (has_crc32c_instruction()) {
      EXPECT_EQ(crc32c_by_instruction(bytes, 0), whole);
    }
    const std::size_t cut = length / 3;
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), whole);
  }
}

}  // namespace
}  // namespace fasthorovod::core
