#include "core/plan_wire.h"

#include "core/request_wire.h"
#include "core/response_cache.h"

namespace fasthorovod::core {

namespace {

constexpr std::uint8_t kHasScales = 1;
constexpr std::uint8_t kHasError = 2;
constexpr std::uint8_t kHasLastJoined = 4;
constexpr std::uint8_t kHasMembers = 8;
constexpr std::uint8_t kAllFlags = kHasScales | kHasError | kHasLastJoined | kHasMembers;

// The least bytes that the things of a plan take, to refuse counts that cannot be true.
constexpr std::size_t kLeastChangeBytes = 2;
constexpr std::size_t kLeastItemBytes = 9;
constexpr std::size_t kLeastTensorBytes = 1;

std::uint32_t read_position(WireReader& reader) {
  const std::uint32_t position = reader.varint32();
  if (position < kMaxCachePositions) return position;
  reader.fail();
  return 0;
}

void write_change(WireWriter& writer, const CacheChange& change) {
  writer.varint(change.position);
  writer.u8(change.insert ? 1 : 0);
  if (!change.insert) return;
  write_request(writer, change.request);
  write_first_dimensions(writer, change.first_dimensions);
}

CacheChange read_change(WireReader& reader) {
  CacheChange change;
  change.position = read_position(reader.field("cache position"));
  const std::uint8_t kind = reader.field("cache change").u8();
  if (kind > 1) reader.fail();
  change.insert = kind == 1;
  if (!change.insert) return change;
  change.request = read_request(reader);
  change.first_dimensions = read_first_dimensions(reader);
  return change;
}

// Tensors of a plan in order, so that a position can be told as a step from the last one. A tensor
// begins with 0 when it is spelled out, else with the step, zigzag, plus one.
class TensorWriter final {
 public:
  explicit TensorWriter(WireWriter& writer) : writer_(writer) {}

  void write(const PlanTensor& tensor) {
    if (!tensor.cache_position) {
      writer_.varint(0);
      writer_.text(tensor.name);
      write_shape(writer_, tensor.shape);
      write_first_dimensions(writer_, tensor.first_dimensions);
      return;
    }
    const std::int64_t step = std::int64_t{*tensor.cache_position} - last_;
    writer_.varint(1 + (step < 0 ? static_cast<std::uint64_t>(-step) * 2 - 1
                                 : static_cast<std::uint64_t>(step) * 2));
    last_ = *tensor.cache_position;
  }

 private:
  WireWriter& writer_;
  std::int64_t last_ = 0;
};

class TensorReader final {
 public:
  explicit TensorReader(WireReader& reader) : reader_(reader) {}

  PlanTensor read() {
    PlanTensor tensor;
    const std::uint64_t start = reader_.field("tensor").varint();
    if (start == 0) {
      tensor.name = reader_.field("name").text();
      tensor.shape = read_shape(reader_);
      tensor.first_dimensions = read_first_dimensions(reader_);
      return tensor;
    }
    const std::uint64_t step = start - 1;
    if (step > 2 * std::uint64_t{kMaxCachePositions}) reader_.fail();
    const auto half = static_cast<std::int64_t>(step / 2);
    const std::int64_t position = (step & 1) == 0 ? last_ + half : last_ - half - 1;
    if (position < 0 || position >= kMaxCachePositions) reader_.fail();
    if (!reader_.ok()) return tensor;
    last_ = position;
    tensor.cache_position = static_cast<std::uint32_t>(position);
    return tensor;
  }

 private:
  WireReader& reader_;
  std::int64_t last_ = 0;
};

std::uint8_t flags_of(const PlanItem& item) {
  const bool scales = item.prescale != 1.0 || item.postscale != 1.0;
  return static_cast<std::uint8_t>((scales ? kHasScales : 0) | (item.error ? kHasError : 0) |
                                   (item.last_joined >= 0 ? kHasLastJoined : 0) |
                                   (item.members.empty() ? 0 : kHasMembers));
}

void write_item(WireWriter& writer, TensorWriter& tensors, const PlanItem& item) {
  const std::uint8_t flags = flags_of(item);
  writer.u8(flags);
  writer.varint(item.group);
  writer.varint(item.sequence);
  writer.u8(static_cast<std::uint8_t>(item.op));
  writer.u8(static_cast<std::uint8_t>(item.type));
  writer.u8(static_cast<std::uint8_t>(item.reduction));
  writer.signed_varint(item.root);
  write_codec(writer, item.codec);
  if ((flags & kHasScales) != 0) {
    writer.f64(item.prescale);
    writer.f64(item.postscale);
  }
  if (item.error) write_error(writer, *item.error);
  if ((flags & kHasLastJoined) != 0) writer.signed_varint(item.last_joined);
  if ((flags & kHasMembers) != 0) write_members(writer, item.members);
  writer.varint(item.tensors.size());
  for (const PlanTensor& tensor : item.tensors) tensors.write(tensor);
}

void read_item_head(WireReader& reader, PlanItem& item) {
  const std::uint8_t flags = reader.field("item flags").u8();
  if ((flags & ~kAllFlags) != 0) reader.fail();
  item.group = reader.field("group").varint32();
  item.sequence = reader.field("sequence").varint();
  item.op = read_enumerator(reader.field("operation"), op_kind_from_wire, OpKind::kAllreduce);
  item.type = read_enumerator(reader.field("type"), data_type_from_wire, DataType::kFloat32);
  item.reduction = read_enumerator(reader.field("reduction"), reduction_from_wire, Reduction::kSum);
  item.root = read_rank(reader.field("root"));
  item.codec = read_codec(reader);
  if ((flags & kHasScales) != 0) {
    item.prescale = reader.field("prescale").f64();
    item.postscale = reader.field("postscale").f64();
  }
  if ((flags & kHasError) != 0) item.error = read_error(reader);
  if ((flags & kHasLastJoined) != 0) item.last_joined = read_rank(reader.field("last joined"));
  if ((flags & kHasMembers) != 0) item.members = read_members(reader);
}

PlanItem read_item(WireReader& reader, TensorReader& tensors) {
  PlanItem item;
  read_item_head(reader, item);
  const std::size_t count = reader.field("tensor count").count(kLeastTensorBytes);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) item.tensors.push_back(tensors.read());
  return item;
}

}  // namespace

void write_plan(WireWriter& writer, const Plan& plan) {
  writer.varint(plan.number);
  writer.varint(plan.cache_changes.size());
  for (const CacheChange& change : plan.cache_changes) write_change(writer, change);
  writer.varint(plan.items.size());
  TensorWriter tensors(writer);
  for (const PlanItem& item : plan.items) write_item(writer, tensors, item);
}

Plan read_plan(WireReader& reader) {
  Plan plan;
  plan.number = reader.field("plan number").varint();
  const std::size_t changes = reader.field("cache change count").count(kLeastChangeBytes);
  for (std::size_t i = 0; i < changes && reader.ok(); ++i) {
    plan.cache_changes.push_back(read_change(reader));
  }
  const std::size_t items = reader.field("item count").count(kLeastItemBytes);
  TensorReader tensors(reader);
  for (std::size_t i = 0; i < items && reader.ok(); ++i) {
    plan.items.push_back(read_item(reader, tensors));
  }
  return plan;
}

}  // namespace fasthorovod::core
