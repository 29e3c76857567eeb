#include "transport/private_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace fasthorovod::transport {

core::Status make_private(std::span<std::byte> pages) {
  if (pages.empty()) return {};
  const auto failed = [&] {
    return core::Error{core::ErrorCode::kUnavailable,
                       fmt::format("no memory to take the place of {} bytes that are shared: {}",
                                   pages.size(), std::generic_category().message(errno))};
  };
  void* const copy =
      ::mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return failed();
  std::memcpy(copy, pages.data(), pages.size());
  // At once: whoever reads the pages finds them at any time.
  if (::mremap(copy, pages.size(), pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) ==
      MAP_FAILED) {
    core::Error error = failed();
    (void)::munmap(copy, pages.size());
    return error;
  }
  return {};
}

}  // namespace fasthorovod::transport
