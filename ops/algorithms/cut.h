// Cutting buffers: into parts as even as whole elements allow, and parts into chunks. Every rank
// cuts alike, from the same numbers, so chunks need no description on the wire. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/schedule.h"

namespace fasthorovod::ops {

/// Part `index` of `size` parts of shape.elements: the first (elements mod size) parts hold one
/// element more.
ByteSpan even_part(const Shape& shape, int index);

/// Rank `index`'s block where each rank has one.
ByteSpan block_part(const Shape& shape, int index);

/// Where the block that comes from rank `index` lies in an all-to-all.
ByteSpan received_part(const Shape& shape, int index);

/// The part's chunks in order: all of the same size (whole elements, at most shape.chunk_bytes but
/// at least one element) except the last. An empty part has none.
std::vector<ByteSpan> chunks_of(const Shape& shape, ByteSpan part);

}  // namespace fasthorovod::ops
