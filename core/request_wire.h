// The bytes of requests and of the values they are made of. Readers mark the WireReader as failed
// at the field that no healthy peer sends.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/request.h"
#include "core/result.h"
#include "core/wire.h"

namespace fasthorovod::core {

void write_request(WireWriter& writer, const Request& request);
Request read_request(WireReader& reader);

void write_shape(WireWriter& writer, const std::vector<std::int64_t>& shape);
std::vector<std::int64_t> read_shape(WireReader& reader);

/// Dimension 0 of every rank: like a shape, but one entry a rank and no product to bound.
void write_first_dimensions(WireWriter& writer, const std::vector<std::int64_t>& dimensions);
std::vector<std::int64_t> read_first_dimensions(WireReader& reader);

/// The ranks of a group, in ascending order.
void write_members(WireWriter& writer, const std::vector<int>& members);
std::vector<int> read_members(WireReader& reader);

void write_codec(WireWriter& writer, const CodecChoice& codec);
CodecChoice read_codec(WireReader& reader);

void write_error(WireWriter& writer, const Error& error);
Error read_error(WireReader& reader);

/// A rank, or -1 for none.
int read_rank(WireReader& reader);

/// One byte that must be an enumerator by `from_wire`; `fallback` when it is not.
template <typename Enum>
Enum read_enumerator(WireReader& reader, std::optional<Enum> (*from_wire)(std::uint8_t),
                     Enum fallback) {
  const std::optional<Enum> value = from_wire(reader.u8());
  if (!value) reader.fail();
  return value.value_or(fallback);
}

}  // namespace fasthorovod::core
