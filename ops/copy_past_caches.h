// A copy whose destination the caches can not keep anyway.
#pragma once

#include <cstddef>

namespace fasthorovod::ops {

/// Copies `bytes` with stores that pass by the caches where the processor has such: the old
/// contents of `to` are not read first, and nothing that is in use is pushed out. For buffers that
/// leave the caches before they are read again; others are read from memory then, which is slower
/// than memcpy. When it returns, the stores are ordered like others. No overlap.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace fasthorovod::ops
