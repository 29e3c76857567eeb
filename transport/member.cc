#include "transport/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/wire.h"
#include "transport/allreduce_wire.h"
#include "transport/lane_wish_wire.h"
#include "transport/local_socket.h"

namespace fasthorovod::transport {
namespace {

using core::WireReader;
using core::WireWriter;

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kMissingNamed = 16;

// Wire values: the position of each message in RendezvousMessage.
enum class Kind : std::uint8_t {
  kIntroduction,
  kMissing,
  kRoster,
  kStartFailed,
  kReady,
  kBegin,
  kProbe
};

struct Host {
  std::string identity;
  std::string name;
  std::string real;
  friend auto operator<=>(const Host&, const Host&) = default;
};

Host host_of(const Member& member) {
  return {member.placement.host_identity, member.placement.host_name, member.real_host};
}

void write(WireWriter& writer, const Host& host) {
  writer.text(host.identity);
  writer.text(host.name);
  writer.text(host.real);
}

std::string read_text(WireReader& reader) {
  std::string text = reader.text();
  if (text.size() > kMaxText) reader.fail();
  return text;
}

Host read_host(WireReader& reader) {
  Host host;
  host.identity = read_text(reader);
  host.name = read_text(reader);
  host.real = read_text(reader);
  return host;
}

void write(WireWriter& writer, const std::vector<Endpoint>& endpoints) {
  writer.varint(endpoints.size());
  for (const Endpoint& endpoint : endpoints) {
    writer.u8(endpoint.address.v6 ? 6 : 4);
    writer.bytes(
        std::as_bytes(std::span(endpoint.address.bytes)).first(endpoint.address.v6 ? 16 : 4));
    writer.u32(endpoint.port);
  }
}

std::vector<Endpoint> read_endpoints(WireReader& reader) {
  std::vector<Endpoint> endpoints;
  const std::size_t count = reader.count(9);
  if (count > kMaxEndpoints) reader.fail();
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    Endpoint endpoint;
    const std::uint8_t family = reader.u8();
    if (family != 4 && family != 6) reader.fail();
    endpoint.address.v6 = family == 6;
    const auto bytes = reader.bytes(family == 6 ? 16 : 4);
    std::ranges::transform(bytes, endpoint.address.bytes.begin(),
                           [](std::byte value) { return static_cast<std::uint8_t>(value); });
    const std::uint32_t port = reader.u32();
    if (port == 0 || port > 65535) reader.fail();
    endpoint.port = static_cast<std::uint16_t>(port);
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

// What of a member is its own, not its host's.
void write_own(WireWriter& writer, const Member& member) {
  write(writer, member.endpoints);
  writer.text(member.door);
  write_lane_wish(writer, member.wish);
  write_allreduce_wish(writer, member.allreduce);
  writer.varint(static_cast<std::uint64_t>(member.arena_mb));
}

Member read_own(WireReader& reader, const Host& host) {
  Member member{{host.identity, host.name}, host.real, read_endpoints(reader), {}};
  member.door = reader.text();
  if (member.door.size() > kMaxLocalName) reader.fail();
  member.wish = read_lane_wish(reader);
  member.allreduce = read_allreduce_wish(reader);
  const std::uint32_t arena_mb = reader.varint32();
  if (arena_mb < core::kLeastArenaMb || arena_mb > core::kMostArenaMb) reader.fail();
  member.arena_mb = static_cast<int>(arena_mb);
  return member;
}

void write(WireWriter& writer, const Introduction& message) {
  writer.u32(static_cast<std::uint32_t>(message.size));
  write(writer, host_of(message.member));
  write_own(writer, message.member);
}

void write(WireWriter& writer, const Missing& message) {
  const std::size_t named = std::min(message.ranks.size(), kMissingNamed);
  writer.varint(named);
  for (std::size_t i = 0; i < named; ++i) writer.u32(static_cast<std::uint32_t>(message.ranks[i]));
  writer.u32(static_cast<std::uint32_t>(message.count));
}

// Hosts first, once each, so that the roster of many ranks on few hosts stays short.
void write(WireWriter& writer, const Roster& message) {
  std::map<Host, std::size_t> index;
  std::vector<Host> hosts;
  for (const Member& member : message.members) {
    if (index.try_emplace(host_of(member), hosts.size()).second) hosts.push_back(host_of(member));
  }
  writer.varint(hosts.size());
  for (const Host& host : hosts) write(writer, host);
  writer.varint(message.members.size());
  for (const Member& member : message.members) {
    writer.varint(index.at(host_of(member)));
    write_own(writer, member);
  }
  write_allreduce_plan(writer, message.allreduce);
}

void write(WireWriter& /*writer*/, const Ready& /*message*/) {}
void write(WireWriter& /*writer*/, const Begin& /*message*/) {}
void write(WireWriter& writer, const Probe& message) {
  writer.varint(message.padding);
  writer.bytes(std::vector<std::byte>(message.padding));
}

void write(WireWriter& writer, const StartFailed& message) {
  writer.u8(static_cast<std::uint8_t>(message.error.code));
  writer.signed_varint(message.error.culprit);
  writer.text(message.error.message);
}

Introduction read_introduction(WireReader& reader) {
  Introduction message;
  message.size = static_cast<int>(reader.u32());
  const Host host = read_host(reader);
  message.member = read_own(reader, host);
  return message;
}

Missing read_missing(WireReader& reader) {
  Missing message;
  const std::size_t named = reader.count(4);
  for (std::size_t i = 0; i < named; ++i) message.ranks.push_back(static_cast<int>(reader.u32()));
  message.count = static_cast<int>(reader.u32());
  return message;
}

Roster read_roster(WireReader& reader) {
  std::vector<Host> hosts(reader.count(3));
  for (Host& host : hosts) host = read_host(reader);
  Roster message;
  const std::size_t count = reader.count(4 + kLeastLaneWishBytes + kLeastAllreduceWishBytes);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint64_t host = reader.varint();
    if (host >= hosts.size()) {
      reader.fail();
    } else {
      message.members.push_back(read_own(reader, hosts[host]));
    }
  }
  message.allreduce = read_allreduce_plan(reader);
  return message;
}

StartFailed read_start_failed(WireReader& reader) {
  StartFailed message;
  const std::uint8_t code = reader.u8();
  if (code > static_cast<std::uint8_t>(core::ErrorCode::kInternal)) reader.fail();
  message.error.code = static_cast<core::ErrorCode>(code);
  message.error.culprit = static_cast<int>(reader.signed_varint());
  message.error.message = reader.text();
  return message;
}

Probe read_probe(WireReader& reader) {
  const std::uint32_t padding = reader.varint32();
  if (padding > kMostPadding) reader.fail();
  (void)reader.bytes(padding);
  return {padding};
}

RendezvousMessage read_body(WireReader& reader, std::uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kIntroduction:
      return read_introduction(reader);
    case Kind::kMissing:
      return read_missing(reader);
    case Kind::kRoster:
      return read_roster(reader);
    case Kind::kStartFailed:
      return read_start_failed(reader);
    case Kind::kReady:
      return Ready{};
    case Kind::kBegin:
      return Begin{};
    case Kind::kProbe:
      return read_probe(reader);
  }
  reader.fail();
  return Missing{};
}

}  // namespace

std::vector<std::byte> encode(const RendezvousMessage& message) {
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(message.index()));
  std::visit([&writer](const auto& each) { write(writer, each); }, message);
  return std::move(writer).take();
}

core::Result<RendezvousMessage> decode_rendezvous(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const std::uint8_t kind = reader.u8();
  RendezvousMessage message = read_body(reader, kind);
  if (!reader.ok() || !reader.at_end()) {
    return core::Error{core::ErrorCode::kProtocol,
                       fmt::format("a start message (kind {}) makes no sense", kind)};
  }
  return message;
}

std::string describe(const Missing& missing) {
  std::string text = missing.count == 1 ? "rank" : "ranks";
  const std::size_t named = std::min(missing.ranks.size(), kMissingNamed);
  for (std::size_t i = 0; i < named; ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", missing.ranks[i]);
  const int more = missing.count - static_cast<int>(named);
  return more > 0 ? fmt::format("{} and {} more", text, more) : text;
}

namespace {

// An error when not all members say the same of a setting: which ranks say what, in the order in
// which it was said first.
template <typename Text>
core::Status check_alike(std::span<const Member> members, std::string_view setting, Text text) {
  std::vector<std::pair<std::string, Missing>> said;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const std::string words(text(members[rank]));
    auto found = std::ranges::find(said, words, &std::pair<std::string, Missing>::first);
    if (found == said.end()) found = said.insert(said.end(), {words, {}});
    found->second.ranks.push_back(static_cast<int>(rank));
    ++found->second.count;
  }
  if (said.size() <= 1) return {};
  std::string list;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const char* const joint = i == 0 ? "" : i + 1 < said.size() ? ", " : " and ";
    list += fmt::format("{}{} on {}", joint, said[i].first, describe(said[i].second));
  }
  return core::Error{core::ErrorCode::kInvalidArgument, fmt::format("{} is {}", setting, list)};
}

}  // namespace

core::Status check_data_planes(std::span<const Member> members) {
  return check_alike(members, "FASTHOROVOD_DATA_PLANE",
                     [](const Member& member) { return core::to_string(member.wish.data_plane); });
}

core::Status check_allreduces(std::span<const Member> members) {
  auto alike = check_alike(members, "FASTHOROVOD_ALLREDUCE", [](const Member& member) {
    const auto& forced = member.allreduce.forced;
    return forced ? core::to_string(*forced) : "auto";
  });
  if (!alike) return alike;
  return check_alike(members, "FASTHOROVOD_DETERMINISTIC", [](const Member& member) {
    return member.allreduce.deterministic ? "1" : "0";
  });
}

std::vector<Endpoint> dialling_order(const Member& peer, const std::string& own_real_host,
                                     std::span<const std::uint32_t> scopes) {
  std::vector<Endpoint> order;
  std::vector<Endpoint> others;
  for (const Endpoint& endpoint : peer.endpoints) {
    if (endpoint.address.is_loopback()) {
      if (peer.real_host == own_real_host) order.push_back(endpoint);
    } else if (endpoint.address.is_link_local()) {
      for (const std::uint32_t scope : scopes) {
        others.push_back(endpoint);
        others.back().address.scope = scope;
      }
    } else {
      others.push_back(endpoint);
    }
  }
  order.insert(order.end(), others.begin(), others.end());
  return order;
}

}  // namespace fasthorovod::transport
