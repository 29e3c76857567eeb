#include "transport/store_message.h"

#include <utility>

#include "core/wire.h"

namespace fasthorovod::transport {

std::vector<std::byte> encode(const StoreMessage& message) {
  core::WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(message.kind));
  writer.text(message.key);
  writer.text(message.value);
  return std::move(writer).take();
}

std::optional<StoreMessage> decode_store_message(std::span<const std::byte> bytes) {
  core::WireReader reader(bytes);
  StoreMessage message;
  message.kind = static_cast<StoreMessage::Kind>(reader.u8());
  message.key = reader.text();
  message.value = reader.text();
  const bool known =
      message.kind == StoreMessage::Kind::kPut || message.kind == StoreMessage::Kind::kGet;
  const bool short_enough =
      message.key.size() <= kMaxStoreText && message.value.size() <= kMaxStoreText;
  if (!reader.ok() || !reader.at_end() || !known || !short_enough) return std::nullopt;
  return message;
}

}  // namespace fasthorovod::transport
