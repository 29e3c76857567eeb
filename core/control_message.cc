#include "core/control_message.h"

#include <fmt/format.h>

#include <utility>

#include "core/plan_wire.h"
#include "core/request_wire.h"
#include "core/response_cache.h"
#include "core/wire.h"

namespace fasthorovod::core {

namespace {

// The first byte of a message. Wire values: never renumber, only append. They follow the variant.
enum class Kind : std::uint8_t {
  kSubmissions = 0,
  kPlan,
  kFaultReport,
  kAbort,
  kGoodbye,
  kRollCall,
  kPresent,
  kOperationFailed,
  kMeet,
  kDeparted
};

constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kLeastRequestBytes = 9;
constexpr std::size_t kBitsPerWord = 64;

void write_body(WireWriter& writer, const Submissions& submissions) {
  writer.varint(submissions.plans_applied);
  writer.u8(submissions.joined ? 1 : 0);
  writer.varint(submissions.cached.size());
  for (const std::uint64_t word : submissions.cached) writer.u64(word);
  writer.varint(submissions.requests.size());
  for (const Request& request : submissions.requests) write_request(writer, request);
}

void write_body(WireWriter& writer, const Plan& plan) { write_plan(writer, plan); }
void write_body(WireWriter& writer, const FaultReport& report) {
  write_error(writer, report.error);
}
void write_body(WireWriter& writer, const Abort& abort) { write_error(writer, abort.error); }
void write_body(WireWriter& writer, const Goodbye& goodbye) {
  writer.varint(goodbye.plans_applied);
  writer.signed_varint(goodbye.first_left);
}
void write_body(WireWriter&, const RollCall&) {}
void write_body(WireWriter&, const Present&) {}
void write_body(WireWriter& writer, const OperationFailed& failed) {
  writer.varint(failed.group);
  writer.varint(failed.sequence);
  writer.varint(failed.members.size());
  for (const int member : failed.members) writer.signed_varint(member);
  write_error(writer, failed.error);
  writer.u8(failed.ends_group ? 1 : 0);
}
void write_body(WireWriter& writer, const Meet& meet) {
  writer.signed_varint(meet.from);
  writer.signed_varint(meet.to);
}
void write_body(WireWriter& writer, const Departed& departed) {
  writer.signed_varint(departed.rank);
}

OperationFailed read_operation_failed(WireReader& reader) {
  OperationFailed failed;
  failed.group = reader.field("group").varint32();
  failed.sequence = reader.field("sequence").varint();
  const std::size_t members = reader.field("members").count(1);
  for (std::size_t i = 0; i < members && reader.ok(); ++i) {
    failed.members.push_back(read_rank(reader));
  }
  failed.error = read_error(reader);
  const std::uint8_t ends_group = reader.field("end of the group").u8();
  if (ends_group > 1) reader.fail();
  failed.ends_group = ends_group == 1;
  return failed;
}

Meet read_meet(WireReader& reader) {
  const int from = read_rank(reader.field("from"));
  return {from, read_rank(reader.field("to"))};
}

Goodbye read_goodbye(WireReader& reader) {
  const std::uint64_t plans_applied = reader.field("plans applied").varint();
  return {plans_applied, read_rank(reader.field("first left"))};
}

Submissions read_submissions(WireReader& reader) {
  Submissions submissions;
  submissions.plans_applied = reader.field("plans applied").varint();
  const std::uint8_t joined = reader.field("joined").u8();
  if (joined > 1) reader.fail();
  submissions.joined = joined == 1;
  const std::size_t words = reader.field("cached bits").count(kWordBytes);
  if (words > kMaxCachePositions / kBitsPerWord) reader.fail();
  for (std::size_t i = 0; i < words && reader.ok(); ++i) submissions.cached.push_back(reader.u64());
  const std::size_t requests = reader.field("request count").count(kLeastRequestBytes);
  for (std::size_t i = 0; i < requests && reader.ok(); ++i) {
    submissions.requests.push_back(read_request(reader));
  }
  return submissions;
}

ControlMessage read_message(WireReader& reader) {
  switch (static_cast<Kind>(reader.field("message kind").u8())) {
    case Kind::kSubmissions:
      return read_submissions(reader);
    case Kind::kPlan:
      return read_plan(reader);
    case Kind::kFaultReport:
      return FaultReport{read_error(reader)};
    case Kind::kAbort:
      return Abort{read_error(reader)};
    case Kind::kGoodbye:
      return read_goodbye(reader);
    case Kind::kRollCall:
      return RollCall{};
    case Kind::kPresent:
      return Present{};
    case Kind::kOperationFailed:
      return read_operation_failed(reader);
    case Kind::kMeet:
      return read_meet(reader);
    case Kind::kDeparted:
      return Departed{read_rank(reader.field("rank"))};
  }
  reader.fail();
  return Goodbye{};
}

}  // namespace

std::vector<std::byte> encode(const ControlMessage& message) {
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& body) { write_body(writer, body); }, message);
  return std::move(writer).take();
}

Result<ControlMessage> decode(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  ControlMessage message = read_message(reader);
  if (reader.ok() && !reader.field("end of message").at_end()) reader.fail();
  if (reader.ok()) return message;
  return Error{ErrorCode::kProtocol, fmt::format("control message of {} bytes: bad {}",
                                                 bytes.size(), reader.failed_field())};
}

}  // namespace fasthorovod::core
