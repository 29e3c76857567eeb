// A rank's shared memory: one memfd, mapped once at its largest size. It has no name, costs memory
// only where it was written, and is gone with the last process that holds it, however that one
// died.
//
// Other processes get the descriptor (inherited, or over a Unix socket) and map the same bytes. The
// file is sealed against any change of its size, so no process can make another one fault.
//
// Thread: any; the bytes are guarded by whoever hands them out.
#pragma once

#include <cstddef>
#include <span>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

class Arena final {
 public:
  static constexpr std::size_t kPage = 4096;

  /// A new arena of `bytes`, rounded up to whole pages; all zero.
  static core::Result<Arena> create(std::size_t bytes);

  /// Maps an arena that another process made. kProtocol when `memory` is not one: no memfd, or not
  /// sealed.
  static core::Result<Arena> open(FileDescriptor memory);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] int fd() const { return memory_.get(); }

  /// Whether all of `span` lies in here.
  [[nodiscard]] bool contains(std::span<const std::byte> span) const;
  /// Where a span that lies in here begins.
  [[nodiscard]] std::size_t offset_of(std::span<const std::byte> span) const;

  /// Gives the memory of whole pages back to the system; they read as zeros again, in every
  /// process.
  void discard(std::span<std::byte> pages) const;

 private:
  Arena(FileDescriptor memory, std::span<std::byte> bytes);

  FileDescriptor memory_;
  std::span<std::byte> bytes_;
};

}  // namespace fasthorovod::transport
