#include "transport/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fasthorovod::transport {
namespace {

// One bit a descriptor. A child's handler may only use what is safe in a signal handler: no lock,
// no allocation.
constexpr std::size_t kWords = 1024;  // descriptors up to 65535; larger ones rely on close-on-exec
std::array<std::atomic<std::uint64_t>, kWords> guarded;

std::size_t word_of(int fd) { return static_cast<std::size_t>(fd) / 64; }
std::uint64_t bit_of(int fd) { return std::uint64_t{1} << (static_cast<unsigned>(fd) % 64); }

void drop_all_in_child() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (std::size_t word = 0; word < kWords; ++word) {
    std::uint64_t bits = guarded[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      const int fd = static_cast<int>(word * 64) + std::countr_zero(bits);
      if (nowhere >= 0) {
        ::dup3(nowhere, fd, O_CLOEXEC);
      } else {
        ::close(fd);
      }
    }
  }
  if (nowhere >= 0) ::close(nowhere);
}

}  // namespace

void drop_on_fork(const FileDescriptor& descriptor) {
  [[maybe_unused]] static const int installed =
      ::pthread_atfork(nullptr, nullptr, &drop_all_in_child);
  if (!descriptor.valid() || word_of(descriptor.get()) >= kWords) return;
  guarded[word_of(descriptor.get())].fetch_or(bit_of(descriptor.get()), std::memory_order_relaxed);
}

void forget_on_fork(int fd) {
  if (word_of(fd) >= kWords) return;
  guarded[word_of(fd)].fetch_and(~bit_of(fd), std::memory_order_relaxed);
}

}  // namespace fasthorovod::transport
