#include "transport/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "transport/fork_guard.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Error failed(const char* what, std::size_t bytes) {
  return {ErrorCode::kUnavailable,
          fmt::format("{} of shared memory of {} MiB failed: {}", what, bytes >> 20,
                      std::generic_category().message(errno))};
}

core::Result<std::span<std::byte>> map(int fd, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return failed("mapping", bytes);
  // A forked child (a data loader) has no use for it, and must not keep its pages.
  (void)::madvise(memory, bytes, MADV_DONTFORK);
  return std::span(static_cast<std::byte*>(memory), bytes);
}

// Past this limit the system would end the process with a signal rather than say no.
core::Status check_file_size_limit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) return {};
  return Error{ErrorCode::kUnavailable,
               fmt::format("shared memory of {} MiB is more than this process may have in a file: "
                           "{} MiB (ulimit -f)",
                           bytes >> 20, limit.rlim_cur >> 20)};
}

}  // namespace

core::Result<Arena> Arena::create(std::size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  if (auto status = check_file_size_limit(bytes); !status) return std::move(status).error();
  FileDescriptor memory(::memfd_create("fasthorovod-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return failed("creation", bytes);
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return failed("sizing", bytes);
  if (::fcntl(memory.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return failed("sealing", bytes);
  }
  core::Result<std::span<std::byte>> mapped = map(memory.get(), bytes);
  if (!mapped) return std::move(mapped).error();
  return Arena(std::move(memory), *mapped);
}

core::Result<Arena> Arena::open(FileDescriptor memory) {
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || ::fstat(memory.get(), &status) != 0 ||
      status.st_size <= 0) {
    return Error{ErrorCode::kProtocol, "the descriptor of an arena names something else"};
  }
  core::Result<std::span<std::byte>> mapped =
      map(memory.get(), static_cast<std::size_t>(status.st_size));
  if (!mapped) return std::move(mapped).error();
  return Arena(std::move(memory), *mapped);
}

Arena::Arena(FileDescriptor memory, std::span<std::byte> bytes)
    : memory_(std::move(memory)), bytes_(bytes) {
  drop_on_fork(memory_);
}

Arena::Arena(Arena&& other) noexcept
    : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, {})) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::~Arena() {
  if (!bytes_.empty()) (void)::munmap(bytes_.data(), bytes_.size());
}

bool Arena::contains(std::span<const std::byte> span) const {
  return span.data() >= bytes_.data() && span.data() + span.size() <= bytes_.data() + bytes_.size();
}

std::size_t Arena::offset_of(std::span<const std::byte> span) const {
  return static_cast<std::size_t>(span.data() - bytes_.data());
}

void Arena::discard(std::span<std::byte> pages) const {
  (void)::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(offset_of(pages)), static_cast<off_t>(pages.size()));
}

}  // namespace fasthorovod::transport
