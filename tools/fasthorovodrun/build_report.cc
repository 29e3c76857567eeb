#include "tools/fasthorovodrun/build_report.h"

#include <fmt/format.h>

#include "core/build_id.h"

namespace fasthorovod::tools {
namespace {

#ifdef FASTHOROVOD_HAVE_TORCH
constexpr bool kHaveTorch = true;
#else
constexpr bool kHaveTorch = false;
#endif

}  // namespace

std::string build_report() {
  const auto row = [](bool built, std::string_view name) {
    return fmt::format("    [{}] {}\n", built ? 'X' : ' ', name);
  };
  std::string text =
      fmt::format("FastHorovod v{} (build {}):\n", core::version(), core::build_id());
  text += "\nAvailable Frameworks:\n";
  text += row(false, "TensorFlow") + row(kHaveTorch, "PyTorch") + row(false, "MXNet");
  text += "\nAvailable Controllers:\n";
  text += row(false, "MPI") + row(true, "TCP");
  text += "\nAvailable Tensor Operations:\n";
  text += row(false, "NCCL") + row(false, "MPI") + row(true, "TCP");
  return text;
}

}  // namespace fasthorovod::tools
