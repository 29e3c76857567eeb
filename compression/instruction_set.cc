#include "compression/instruction_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/instruction_set.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::compression::HWY_NAMESPACE {

std::int64_t target_here() { return HWY_TARGET; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::compression {
namespace {

HWY_EXPORT(target_here);

std::string_view name_of(std::int64_t target) {
  switch (target) {
    case HWY_AVX3:
      return "avx512";
    case HWY_AVX2:
      return "avx2";
    case HWY_SSE4:
      return "sse4";
    case HWY_SCALAR:
    case HWY_EMU128:
      return "scalar";
    default:
      return hwy::TargetName(target);
  }
}

// Asked for once, before any is disabled: afterwards Highway does not tell the others.
const std::vector<std::int64_t>& targets() {
  static const std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  return all;
}

}  // namespace

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  for (const std::int64_t target : targets()) names.push_back(name_of(target));
  return names;
}

core::Status use_instruction_set(std::string_view name) {
  for (const std::int64_t target : targets()) {
    if (name != name_of(target) && name != "auto") continue;
    if (name_of(target) == instruction_set()) return {};  // and no other thread is disturbed
    hwy::DisableTargets(target - 1);                      // lower bits are better sets
    return {};
  }
  return core::Error{core::ErrorCode::kInvalidArgument,
                     fmt::format("there is no instruction set \"{}\" here: it can be auto, {}",
                                 name, fmt::join(instruction_sets(), ", "))};
}

std::string_view instruction_set() { return name_of(HWY_DYNAMIC_DISPATCH(target_here)()); }

}  // namespace fasthorovod::compression
#endif  // HWY_ONCE
