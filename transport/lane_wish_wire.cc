#include "transport/lane_wish_wire.h"

#include <optional>

namespace fasthorovod::transport {
namespace {

using core::WireReader;

constexpr int kAuto = -1;
constexpr int kMostCores = 1 << 20;

int read_between(WireReader& reader, int least, int most) {
  const std::int64_t value = reader.signed_varint();
  if (value < least || value > most) reader.fail();
  return static_cast<int>(value);
}

std::optional<int> read_choice(WireReader& reader, int most) {
  const int value = read_between(reader, kAuto, most);
  return value == kAuto ? std::nullopt : std::optional(value);
}

}  // namespace

void write_lane_wish(core::WireWriter& writer, const core::LaneWish& wish) {
  writer.signed_varint(wish.lanes.value_or(kAuto));
  writer.signed_varint(wish.auxiliaries.value_or(kAuto));
  writer.signed_varint(wish.flows.value_or(kAuto));
  writer.signed_varint(wish.cores);
  writer.signed_varint(wish.link_mbit);
  writer.signed_varint(wish.lane_mbit);
  writer.signed_varint(wish.auxiliary_mbit);
  writer.u8(static_cast<std::uint8_t>(wish.data_plane));
}

core::LaneWish read_lane_wish(WireReader& reader) {
  core::LaneWish wish;
  wish.lanes = read_choice(reader, core::kMostLanes);
  wish.auxiliaries = read_choice(reader, core::kMostAuxiliaries);
  wish.flows = read_choice(reader, core::kMostFlowsOfALane);
  wish.cores = read_between(reader, 0, kMostCores);
  wish.link_mbit = read_between(reader, 0, core::kMostMbit);
  wish.lane_mbit = read_between(reader, 0, core::kMostMbit);
  wish.auxiliary_mbit = read_between(reader, 0, core::kMostMbit);
  const std::uint8_t plane = reader.u8();
  if (plane > static_cast<std::uint8_t>(core::DataPlane::kMpi)) reader.fail();
  wish.data_plane = static_cast<core::DataPlane>(plane);
  const int lanes = wish.lanes.value_or(core::kMostLanes);
  if (lanes < 1 || wish.flows == 0 || wish.auxiliaries.value_or(0) > lanes) reader.fail();
  return wish;
}

}  // namespace fasthorovod::transport
