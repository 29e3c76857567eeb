#include "transport/mate_hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/wire.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::uint64_t kMagic = 0x4D64767268747346;  // "FsthrvdM"

Mac mac_of(std::span<const std::byte> said, const MateRoute& route, const Secret& secret) {
  core::WireWriter writer;
  writer.bytes(said);
  writer.text(route.door);
  writer.u32(static_cast<std::uint32_t>(route.to));
  return secret.mac("hello of a mate", std::move(writer).take());
}

}  // namespace

std::vector<std::byte> encode(const MateHello& hello, const MateRoute& route,
                              const Secret& secret) {
  core::WireWriter writer;
  writer.u64(kMagic);
  writer.u32(kMateVersion);
  writer.bytes(hello.job);
  writer.u32(hello.epoch);
  writer.u32(static_cast<std::uint32_t>(hello.rank));
  writer.u32(static_cast<std::uint32_t>(hello.size));
  std::vector<std::byte> bytes = std::move(writer).take();
  const Mac mac = mac_of(bytes, route, secret);
  bytes.insert(bytes.end(), mac.begin(), mac.end());
  return bytes;
}

core::Result<MateHello> decode_mate_hello(std::span<const std::byte> bytes, const MateRoute& route,
                                          const Secret& secret) {
  core::WireReader reader(bytes);
  if (reader.u64() != kMagic) {
    return Error{ErrorCode::kProtocol, "what it says is no hello of a rank of FastHorovod"};
  }
  if (const std::uint32_t version = reader.u32(); version != kMateVersion) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("it speaks version {} of the exchange of arenas, this rank version {}",
                             version, kMateVersion)};
  }
  MateHello hello;
  const auto job = reader.bytes(hello.job.size());
  std::ranges::copy(job, hello.job.begin());
  hello.epoch = reader.u32();
  hello.rank = static_cast<int>(reader.u32());
  hello.size = static_cast<int>(reader.u32());
  Mac mac{};
  const std::size_t said = bytes.size() - reader.left();
  std::ranges::copy(reader.bytes(mac.size()), mac.begin());
  if (!reader.ok() || !reader.at_end()) {
    return Error{ErrorCode::kProtocol, "its hello has another length than this version's"};
  }
  if (!equal(mac, mac_of(bytes.first(said), route, secret))) {
    return Error{ErrorCode::kAuthentication, "it does not know the job secret"};
  }
  return hello;
}

}  // namespace fasthorovod::transport
