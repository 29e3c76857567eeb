#include "transport/frame.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fasthorovod::transport {
namespace {

FrameHeader sample() {
  return {.epoch = 0x01020304,
          .group = 0x05060708,
          .sequence = 0x1112131415161718,
          .transfer = 0x21222324,
          .hop = 0x25262728,
          .payload_bytes = (std::uint64_t{1} << 33) + 5,
          .fingerprint = 0x31323334,
          .kind = FrameKind::kAnnounce};
}

void expect_equal(const FrameHeader& a, const FrameHeader& b) {
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.transfer, b.transfer);
  EXPECT_EQ(a.hop, b.hop);
  EXPECT_EQ(a.payload_bytes, b.payload_bytes);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.kind, b.kind);
}

TEST(Frame, ComesBackAsItWasEncoded) {
  const auto decoded = decode(encode(sample()));
  ASSERT_TRUE(decoded);
  expect_equal(*decoded, sample());
}

TEST(Frame, ComesBackWithExtremeValues) {
  constexpr auto k32 = std::numeric_limits<std::uint32_t>::max();
  constexpr auto k64 = std::numeric_limits<std::uint64_t>::max();
  for (const FrameHeader& header :
       {FrameHeader{}, FrameHeader{k32, k32, k64, k32, k32, k64, k32, kLastFrameKind}}) {
    const auto decoded = decode(encode(header));
    ASSERT_TRUE(decoded);
    expect_equal(*decoded, header);
  }
}

TEST(Frame, IsLittleEndianAtFixedPlaces) {
  const auto bytes = encode(sample());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "FHVC");
  EXPECT_EQ(bytes[4], std::byte{2});
  EXPECT_EQ(bytes[6], std::byte{2});
  EXPECT_EQ(bytes[8], std::byte{0x04});
  EXPECT_EQ(bytes[11], std::byte{0x01});
  EXPECT_EQ(bytes[16], std::byte{0x18});
  EXPECT_EQ(bytes[24], std::byte{0x05});
  EXPECT_EQ(bytes[28], std::byte{0x02});
  EXPECT_EQ(bytes[40], std::byte{0x34});
}

TEST(Frame, DetectsEveryFlippedBit) {
  const auto good = encode(sample());
  for (std::size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto decoded = decode(bad);
    ASSERT_FALSE(decoded) << "bit " << bit;
    EXPECT_EQ(decoded.error().code, core::ErrorCode::kProtocol);
    EXPECT_EQ(decoded.error().culprit, -1);
  }
}

TEST(Frame, SaysWhatIsWrong) {
  auto bytes = encode(sample());
  bytes[0] = std::byte{'G'};
  EXPECT_NE(decode(bytes).error().message.find("begins with"), std::string::npos);
  bytes = encode(sample());
  bytes[4] = std::byte{9};
  EXPECT_NE(decode(bytes).error().message.find("version 9"), std::string::npos);
  bytes = encode(sample());
  bytes[47] ^= std::byte{1};
  EXPECT_NE(decode(bytes).error().message.find("CRC"), std::string::npos);
}

}  // namespace
}  // namespace fasthorovod::transport
