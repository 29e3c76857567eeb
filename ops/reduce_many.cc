#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "compression/kernels/targets.h"
#include "ops/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce_many.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/kernels/reductions-inl.h"

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::ops::HWY_NAMESPACE {

struct OneNan {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag tag, V lanes) const {
    return with_one_nan(tag, lanes);
  }
};

struct AsItIs {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V lanes) const {
    return lanes;
  }
};

/// to[i] = the sources' elements, reduced in their order. An element of every source is
/// read before it is written.
struct ManyKernel {
  std::byte* to;
  std::span<const std::byte* const> sources;
  std::size_t count;

  template <typename Format, typename Operation>
  void floats(Operation operation) const {
    reduce_lanes<Format>(operation, OneNan());
  }

  template <typename Format, typename Operation>
  void integers(Operation operation) const {
    reduce_lanes<Format>(operation, AsItIs());
  }

  /// `T` is unsigned: the low bits of a product know no sign.
  template <typename T>
  void products() const {
    for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {
      T product = 1;
      for (const std::byte* source : sources) {
        T factor = 0;
        std::memcpy(&factor, source + i, sizeof(T));
        product = static_cast<T>(product * factor);
      }
      std::memcpy(to + i, &product, sizeof(T));
    }
  }

 private:
  template <typename Format>
  static auto load(typename Format::Tag tag, const std::byte* source, std::size_t i) {
    return Format::load(tag, reinterpret_cast<const typename Format::Memory*>(source) + i);
  }

  template <typename Format, typename V>
  HWY_INLINE void store(typename Format::Tag tag, V lanes, std::size_t i) const {
    Format::store(tag, lanes, reinterpret_cast<typename Format::Memory*>(to) + i);
  }

  // What a processor asks for by itself ends at each page, and it waits there; asked for this far
  // ahead, large buffers come up to a seventh faster. It may be beyond the end: nothing is read.
  HWY_INLINE void ask_ahead(const std::byte* source, std::size_t bytes) const {
    constexpr std::size_t kAhead = 1024;
    constexpr std::size_t kLine = 64;
    for (std::size_t at = kAhead; at < kAhead + bytes; at += kLine) hwy::Prefetch(source + at);
  }

  // Four vectors at a time: the additions of one do not wait for those of another.
  template <typename Format, typename Operation, typename Finish>
  void reduce_lanes(Operation operation, Finish finish) const {
    const typename Format::Tag tag;
    const std::size_t lanes = hn::Lanes(tag);
    std::size_t i = 0;
    constexpr std::size_t kElement = sizeof(typename Format::Memory);
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      for (const std::byte* source : sources) {
        ask_ahead(source + i * kElement, 4 * lanes * kElement);
      }
      auto first = load<Format>(tag, sources[0], i);
      auto second = load<Format>(tag, sources[0], i + lanes);
      auto third = load<Format>(tag, sources[0], i + 2 * lanes);
      auto fourth = load<Format>(tag, sources[0], i + 3 * lanes);
      for (std::size_t s = 1; s < sources.size(); ++s) {
        first = operation(tag, first, load<Format>(tag, sources[s], i));
        second = operation(tag, second, load<Format>(tag, sources[s], i + lanes));
        third = operation(tag, third, load<Format>(tag, sources[s], i + 2 * lanes));
        fourth = operation(tag, fourth, load<Format>(tag, sources[s], i + 3 * lanes));
      }
      store<Format>(tag, finish(tag, first), i);
      store<Format>(tag, finish(tag, second), i + lanes);
      store<Format>(tag, finish(tag, third), i + 2 * lanes);
      store<Format>(tag, finish(tag, fourth), i + 3 * lanes);
    }
    for (; i < count; i += lanes) {
      reduce_vector<Format>(i, std::min(lanes, count - i), operation, finish);
    }
  }

  // One vector, or the elements that fill none: through memory of a vector's size, so that they get
  // the same bits.
  template <typename Format, typename Operation, typename Finish>
  void reduce_vector(std::size_t i, std::size_t elements, Operation operation,
                     Finish finish) const {
    using Memory = typename Format::Memory;
    const typename Format::Tag tag;
    Memory memory[hn::MaxLanes(tag)] = {};
    const std::size_t offset = i * sizeof(Memory);
    const std::size_t bytes = elements * sizeof(Memory);
    std::memcpy(memory, sources[0] + offset, bytes);
    auto result = Format::load(tag, memory);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      std::memcpy(memory, sources[s] + offset, bytes);
      result = operation(tag, result, Format::load(tag, memory));
    }
    Format::store(tag, finish(tag, result), memory);
    std::memcpy(to + offset, memory, bytes);
  }
};

void reduce_all(std::byte* to, std::span<const std::byte* const> sources, std::size_t count,
                DataType type, Reduction reduction) {
  reduce_type(ManyKernel{to, sources, count}, type, reduction);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::ops {
namespace {
HWY_EXPORT(reduce_all);
}  // namespace

void reduce_many(std::byte* to, std::span<const std::byte* const> sources, std::size_t count,
                 core::DataType type, core::Reduction reduction) noexcept {
  HWY_DYNAMIC_DISPATCH(reduce_all)(to, sources, count, type, reduction);
}

}  // namespace fasthorovod::ops
#endif  // HWY_ONCE
