#include "ops/ready_notice.h"

#include <string_view>

#include "core/wire.h"

namespace fasthorovod::ops {
namespace {

constexpr std::size_t kMaxDescription = 256;

}  // namespace

std::vector<std::byte> encode(const ReadyNotice& notice) {
  core::WireWriter writer;
  writer.varint(notice.sends);
  writer.varint(notice.expects);
  writer.text(std::string_view(notice.description).substr(0, kMaxDescription));
  return std::move(writer).take();
}

std::optional<ReadyNotice> decode_ready(std::uint32_t fingerprint,
                                        std::span<const std::byte> bytes) {
  core::WireReader reader(bytes);
  ReadyNotice notice;
  notice.fingerprint = fingerprint;
  notice.sends = reader.varint();
  notice.expects = reader.varint();
  notice.description = reader.text();
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return notice;
}

}  // namespace fasthorovod::ops
