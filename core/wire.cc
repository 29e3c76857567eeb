#include "core/wire.h"

#include <bit>
#include <limits>

namespace fasthorovod::core {

namespace {

constexpr int kVarintBits = 7;
constexpr std::uint64_t kVarintMask = 0x7F;
constexpr std::uint64_t kVarintMore = 0x80;

}  // namespace

void WireWriter::u8(std::uint8_t value) { bytes_.push_back(std::byte{value}); }

void WireWriter::u32(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) u8(static_cast<std::uint8_t>(value >> shift));
}

void WireWriter::u64(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) u8(static_cast<std::uint8_t>(value >> shift));
}

void WireWriter::f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }

void WireWriter::varint(std::uint64_t value) {
  for (; value > kVarintMask; value >>= kVarintBits) {
    u8(static_cast<std::uint8_t>((value & kVarintMask) | kVarintMore));
  }
  u8(static_cast<std::uint8_t>(value));
}

void WireWriter::signed_varint(std::int64_t value) {
  const auto sign = static_cast<std::uint64_t>(value >> 63);  // all ones when negative
  varint((static_cast<std::uint64_t>(value) << 1) ^ sign);
}

void WireWriter::bytes(std::span<const std::byte> value) {
  bytes_.insert(bytes_.end(), value.begin(), value.end());
}

void WireWriter::text(std::string_view value) {
  varint(value.size());
  bytes(std::as_bytes(std::span(value)));
}

WireReader& WireReader::field(std::string_view name) {
  if (!failed_) field_ = name;
  return *this;
}

std::span<const std::byte> WireReader::bytes(std::size_t count) {
  if (failed_ || count > rest_.size()) {
    failed_ = true;
    return {};
  }
  const auto taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

std::uint64_t WireReader::fixed(std::size_t width) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const std::byte byte : bytes(width)) {
    value |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return value;
}

std::uint8_t WireReader::u8() { return static_cast<std::uint8_t>(fixed(1)); }
std::uint32_t WireReader::u32() { return static_cast<std::uint32_t>(fixed(4)); }
std::uint64_t WireReader::u64() { return fixed(8); }
double WireReader::f64() { return std::bit_cast<double>(fixed(8)); }

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += kVarintBits) {
    const std::uint64_t byte = fixed(1);
    const std::uint64_t bits = byte & kVarintMask;
    if (failed_ || (bits << shift) >> shift != bits) break;  // past the end, or past 64 bits
    value |= bits << shift;
    if ((byte & kVarintMore) == 0) return value;
  }
  failed_ = true;
  return 0;
}

std::int64_t WireReader::signed_varint() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

std::uint32_t WireReader::varint32() {
  const std::uint64_t value = varint();
  if (value <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(value);
  failed_ = true;
  return 0;
}

std::string WireReader::text() {
  const auto content = bytes(count(1));
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::size_t WireReader::count(std::size_t least_bytes) {
  const std::uint64_t value = varint();
  if (!failed_ && value <= rest_.size() / least_bytes) return static_cast<std::size_t>(value);
  failed_ = true;
  return 0;
}

}  // namespace fasthorovod::core
