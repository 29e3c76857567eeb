#include "core/wire.h"

#include <gtest/gtest.h>

#include <limits>

namespace fasthorovod::core {
namespace {

TEST(Wire, ReadsBackWhatWasWritten) {
  WireWriter writer;
  writer.u8(200);
  writer.u32(0x01020304);
  writer.u64(0x0102030405060708);
  writer.f64(-0.25);
  writer.varint(300);
  writer.signed_varint(-3);
  writer.text("name");
  const auto bytes = std::move(writer).take();
  WireReader reader(bytes);
  EXPECT_EQ(reader.u8(), 200);
  EXPECT_EQ(reader.u32(), 0x01020304u);
  EXPECT_EQ(reader.u64(), 0x0102030405060708u);
  EXPECT_EQ(reader.f64(), -0.25);
  EXPECT_EQ(reader.varint(), 300u);
  EXPECT_EQ(reader.signed_varint(), -3);
  EXPECT_EQ(reader.text(), "name");
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.at_end());
}

TEST(Wire, KeepsVarintsOfEverySize) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t value : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1}) {
      WireWriter writer;
      writer.varint(value);
      writer.signed_varint(static_cast<std::int64_t>(value));
      writer.signed_varint(-static_cast<std::int64_t>(value >> 1));
      const auto bytes = std::move(writer).take();
      WireReader reader(bytes);
      EXPECT_EQ(reader.varint(), value);
      EXPECT_EQ(reader.signed_varint(), static_cast<std::int64_t>(value));
      EXPECT_EQ(reader.signed_varint(), -static_cast<std::int64_t>(value >> 1));
      EXPECT_TRUE(reader.ok());
    }
  }
}

TEST(Wire, StaysFailedAfterReadingPastTheEnd) {
  const std::vector<std::byte> bytes(3, std::byte{1});
  WireReader reader(bytes);
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0u);
  EXPECT_EQ(reader.text(), "");
}

TEST(Wire, RefusesVarintsThatDoNotFit) {
  std::vector<std::byte> bytes(10, std::byte{0xFF});
  bytes.back() = std::byte{0x02};  // bit 64
  WireReader reader(bytes);
  reader.varint();
  EXPECT_FALSE(reader.ok());

  WireWriter writer;
  writer.varint(std::uint64_t{1} << 32);
  const auto large = std::move(writer).take();
  WireReader small(large);
  EXPECT_EQ(small.varint32(), 0u);
  EXPECT_FALSE(small.ok());
}

TEST(Wire, RefusesCountsOfMoreThanTheBytesCanHold) {
  WireWriter writer;
  writer.varint(3);
  writer.u32(0);
  writer.u8(0);
  const auto bytes = std::move(writer).take();  // five bytes after the count
  WireReader two_each(bytes);
  EXPECT_EQ(two_each.count(2), 0u);
  EXPECT_FALSE(two_each.ok());
  WireReader one_each(bytes);
  EXPECT_EQ(one_each.count(1), 3u);
  EXPECT_TRUE(one_each.ok());
}

TEST(Wire, RefusesTextsLongerThanTheMessage) {
  WireWriter writer;
  writer.varint(std::numeric_limits<std::uint64_t>::max());
  const auto bytes = std::move(writer).take();
  WireReader reader(bytes);
  EXPECT_EQ(reader.text(), "");
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace fasthorovod::core
