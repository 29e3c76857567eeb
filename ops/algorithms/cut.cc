#include "ops/algorithms/cut.h"

#include <algorithm>
#include <numeric>

namespace fasthorovod::ops {
namespace {

ByteSpan part_of(const std::vector<std::uint64_t>& blocks, int index, std::uint64_t element_bytes) {
  const auto own = blocks.begin() + index;
  const std::uint64_t before = std::accumulate(blocks.begin(), own, std::uint64_t{0});
  return {before * element_bytes, *own * element_bytes};
}

}  // namespace

ByteSpan even_part(const Shape& shape, int index) {
  const auto size = static_cast<std::uint64_t>(shape.size);
  const auto before = static_cast<std::uint64_t>(index);
  const std::uint64_t quotient = shape.elements / size;
  const std::uint64_t larger_parts = shape.elements % size;
  const std::uint64_t begin = before * quotient + std::min(before, larger_parts);
  const std::uint64_t count = quotient + (before < larger_parts ? 1 : 0);
  return {begin * shape.element_bytes, count * shape.element_bytes};
}

ByteSpan block_part(const Shape& shape, int index) {
  return part_of(shape.block_elements, index, shape.element_bytes);
}

ByteSpan received_part(const Shape& shape, int index) {
  return part_of(shape.received_elements, index, shape.element_bytes);
}

std::vector<ByteSpan> chunks_of(const Shape& shape, ByteSpan part) {
  const std::uint64_t elements =
      std::max<std::uint64_t>(1, shape.chunk_bytes / shape.element_bytes);
  const std::uint64_t chunk_bytes = elements * shape.element_bytes;
  std::vector<ByteSpan> chunks;
  for (std::uint64_t done = 0; done < part.bytes; done += chunk_bytes) {
    chunks.push_back({part.offset + done, std::min(chunk_bytes, part.bytes - done)});
  }
  return chunks;
}

}  // namespace fasthorovod::ops
