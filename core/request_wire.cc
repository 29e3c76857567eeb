#include "core/request_wire.h"

#include <bit>
#include <limits>

namespace fasthorovod::core {

namespace {

// Scales other than 1 are rare and take sixteen bytes, bundles take a name, and few requests have
// members: a bit says what is there.
constexpr std::uint8_t kHasScales = 1;
constexpr std::uint8_t kHasBundle = 2;
constexpr std::uint8_t kHasMembers = 4;
constexpr std::uint8_t kAllFlags = kHasScales | kHasBundle | kHasMembers;

std::optional<ErrorCode> error_code_from_wire(std::uint8_t value) {
  if (value > static_cast<std::uint8_t>(ErrorCode::kInternal)) return std::nullopt;
  return static_cast<ErrorCode>(value);
}

std::int64_t read_dimension(WireReader& reader) {
  const std::uint64_t value = reader.varint();
  if (value > kMaxElements) {
    reader.fail();
    return 0;
  }
  return static_cast<std::int64_t>(value);
}

std::vector<std::int64_t> read_dimensions(WireReader& reader) {
  std::vector<std::int64_t> dimensions;
  const std::size_t count = reader.count(1);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    dimensions.push_back(read_dimension(reader));
  }
  return dimensions;
}

void write_dimensions(WireWriter& writer, const std::vector<std::int64_t>& dimensions) {
  writer.varint(dimensions.size());
  for (const std::int64_t dimension : dimensions) {
    writer.varint(static_cast<std::uint64_t>(dimension));
  }
}

bool has_scales(const Request& request) {
  return request.prescale != 1.0 || request.postscale != 1.0;
}

}  // namespace

void write_shape(WireWriter& writer, const std::vector<std::int64_t>& shape) {
  write_dimensions(writer, shape);
}

std::vector<std::int64_t> read_shape(WireReader& reader) {
  std::vector<std::int64_t> shape = read_dimensions(reader.field("shape"));
  if (!is_valid_shape(shape)) reader.fail();
  return shape;
}

void write_first_dimensions(WireWriter& writer, const std::vector<std::int64_t>& dimensions) {
  write_dimensions(writer, dimensions);
}

std::vector<std::int64_t> read_first_dimensions(WireReader& reader) {
  return read_dimensions(reader.field("first dimensions"));
}

int read_rank(WireReader& reader) {
  const std::int64_t value = reader.signed_varint();
  if (value >= -1 && value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  reader.fail();
  return -1;
}

void write_members(WireWriter& writer, const std::vector<int>& members) {
  writer.varint(members.size());
  for (const int member : members) writer.varint(static_cast<std::uint64_t>(member));
}

std::vector<int> read_members(WireReader& reader) {
  std::vector<int> members;
  const std::size_t count = reader.field("members").count(1);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint32_t member = reader.varint32();
    if (member > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) reader.fail();
    members.push_back(static_cast<int>(member));
  }
  if (!is_ascending(members)) reader.fail();
  return members;
}

void write_codec(WireWriter& writer, const CodecChoice& codec) {
  writer.u8(static_cast<std::uint8_t>(codec.id));
  if (codec.id == CodecId::kTwobit) writer.u32(std::bit_cast<std::uint32_t>(codec.threshold));
}

CodecChoice read_codec(WireReader& reader) {
  CodecChoice codec;
  codec.id = read_enumerator(reader.field("codec"), codec_id_from_wire, CodecId::kNone);
  if (codec.id == CodecId::kTwobit) {
    codec.threshold = std::bit_cast<float>(reader.field("codec threshold").u32());
  }
  return codec;
}

void write_request(WireWriter& writer, const Request& request) {
  const bool bundled = !request.bundle.empty() || request.bundle_size != 0;
  writer.text(request.name);
  writer.u8(static_cast<std::uint8_t>((has_scales(request) ? kHasScales : 0) |
                                      (bundled ? kHasBundle : 0) |
                                      (request.members.empty() ? 0 : kHasMembers)));
  writer.varint(request.group);
  writer.u8(static_cast<std::uint8_t>(request.op));
  writer.u8(static_cast<std::uint8_t>(request.type));
  writer.u8(static_cast<std::uint8_t>(request.reduction));
  writer.signed_varint(request.root);
  write_codec(writer, request.codec);
  write_shape(writer, request.shape);
  if (has_scales(request)) {
    writer.f64(request.prescale);
    writer.f64(request.postscale);
  }
  if (bundled) {
    writer.text(request.bundle);
    writer.varint(request.bundle_size);
  }
  if (!request.members.empty()) write_members(writer, request.members);
}

Request read_request(WireReader& reader) {
  Request request;
  request.name = reader.field("name").text();
  const std::uint8_t flags = reader.field("request flags").u8();
  if ((flags & ~kAllFlags) != 0) reader.fail();
  request.group = reader.field("group").varint32();
  request.op = read_enumerator(reader.field("operation"), op_kind_from_wire, OpKind::kAllreduce);
  request.type = read_enumerator(reader.field("type"), data_type_from_wire, DataType::kFloat32);
  request.reduction =
      read_enumerator(reader.field("reduction"), reduction_from_wire, Reduction::kSum);
  request.root = read_rank(reader.field("root"));
  request.codec = read_codec(reader);
  request.shape = read_shape(reader);
  if ((flags & kHasScales) != 0) {
    request.prescale = reader.field("prescale").f64();
    request.postscale = reader.field("postscale").f64();
  }
  if ((flags & kHasBundle) != 0) {
    request.bundle = reader.field("bundle").text();
    request.bundle_size = reader.field("bundle size").varint32();
  }
  if ((flags & kHasMembers) != 0) request.members = read_members(reader);
  return request;
}

void write_error(WireWriter& writer, const Error& error) {
  writer.u8(static_cast<std::uint8_t>(error.code));
  writer.text(error.message);
  writer.signed_varint(error.culprit);
}

Error read_error(WireReader& reader) {
  Error error;
  error.code =
      read_enumerator(reader.field("error code"), error_code_from_wire, ErrorCode::kInternal);
  error.message = reader.field("error message").text();
  error.culprit = read_rank(reader.field("culprit"));
  return error;
}

}  // namespace fasthorovod::core
