#include "ops/copy_past_caches.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/copy_past_caches.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kLine = 64;  // a store that fills one needs nothing of what was there

void stream_lines(std::byte* to_bytes, const std::byte* from_bytes, std::size_t lines) {
  const hn::CappedTag<std::uint8_t, kLine> tag;
  const std::size_t lanes = hn::Lanes(tag);
  auto* to = reinterpret_cast<std::uint8_t*>(to_bytes);
  const auto* from = reinterpret_cast<const std::uint8_t*>(from_bytes);
  for (std::size_t i = 0; i < lines * kLine; i += kLine) {
    for (std::size_t part = 0; part < kLine; part += lanes) {
      hn::Stream(hn::LoadU(tag, from + i + part), tag, to + i + part);
    }
  }
  hwy::FlushStream();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::ops {
namespace {
HWY_EXPORT(stream_lines);
}  // namespace

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = std::min(bytes, (kLine - past_line) % kLine);
  const std::size_t lines = (bytes - head) / kLine;
  const std::size_t tail = head + lines * kLine;
  if (head > 0) std::memcpy(to, from, head);
  if (lines > 0) HWY_DYNAMIC_DISPATCH(stream_lines)(to + head, from + head, lines);
  if (tail < bytes) std::memcpy(to + tail, from + tail, bytes - tail);
}

}  // namespace fasthorovod::ops
#endif  // HWY_ONCE
