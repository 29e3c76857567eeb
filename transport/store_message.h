// The two requests of the store and their answers, as bytes. An answer repeats the request with
// what is stored. Immutable values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fasthorovod::transport {

inline constexpr std::size_t kMaxStoreText = 4096;  // of a key, and of a value

struct StoreMessage {
  enum class Kind : std::uint8_t { kPut = 1, kGet = 2 };  // wire values
  Kind kind = Kind::kPut;
  std::string key;
  std::string value;  // empty in the request to get
};

std::vector<std::byte> encode(const StoreMessage& message);
/// Nothing when it makes no sense.
std::optional<StoreMessage> decode_store_message(std::span<const std::byte> bytes);

}  // namespace fasthorovod::transport
