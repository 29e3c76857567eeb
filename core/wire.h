// Bytes of messages: a writer that grows and a reader that never reads past the end.
//
// Numbers are little-endian. A varint holds seven bits a byte, lowest first, the high bit saying
// that another byte follows: small counts and positions cost one byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fasthorovod::core {

class WireWriter final {
 public:
  void u8(std::uint8_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void f64(double value);
  void varint(std::uint64_t value);
  void signed_varint(std::int64_t value);        // zigzag: small negative numbers are short, too
  void bytes(std::span<const std::byte> value);  // as they are, no length
  void text(std::string_view value);             // varint length, then the bytes

  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what WireWriter wrote. The first read that fails (past the end, a varint that does not
/// fit, or fail()) makes the reader failed for good: further reads return zeros and empty texts, so
/// a decoder may read a whole structure and look at ok() once. It allocates nothing that the bytes
/// do not hold.
class WireReader final {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint8_t u8();
  std::uint32_t u32();
  std::uint64_t u64();
  double f64();
  std::uint64_t varint();
  std::int64_t signed_varint();
  std::uint32_t varint32();  // fails when the value needs more than 32 bits
  std::span<const std::byte> bytes(std::size_t count);
  std::string text();

  /// A count of things of which each takes at least `least_bytes` (1 or more) of what is left;
  /// fails when they cannot all be there, so that reserving `count` elements is safe.
  std::size_t count(std::size_t least_bytes);

  /// Names what is read next: reader.field("shape").varint().
  WireReader& field(std::string_view name);

  /// For decoders that find a value of the current field to be nonsense.
  void fail() { failed_ = true; }
  /// The field at which reading failed first.
  [[nodiscard]] std::string_view failed_field() const { return field_; }
  [[nodiscard]] bool ok() const { return !failed_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  std::uint64_t fixed(std::size_t width);

  std::span<const std::byte> rest_;
  std::string_view field_ = "message";
  bool failed_ = false;
};

}  // namespace fasthorovod::core
