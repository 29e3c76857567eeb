#include "ops/host_loan.h"

#include "transport/arena.h"

namespace fasthorovod::ops {
namespace {

std::uint64_t offset_in(std::span<const std::byte> arena, std::span<const std::byte> buffer) {
  const bool inside =
      buffer.data() >= arena.data() && buffer.data() + buffer.size() <= arena.data() + arena.size();
  return inside ? static_cast<std::uint64_t>(buffer.data() - arena.data()) : HostLoan::kNothing;
}

bool lies_in(std::uint64_t offset, std::uint64_t bytes, std::uint64_t arena_bytes) {
  if (offset == HostLoan::kNothing) return true;
  return bytes <= arena_bytes && offset <= arena_bytes - bytes;
}

}  // namespace

bool HostLoan::fits(std::uint64_t bytes, std::uint64_t arena_bytes) const {
  return lies_in(input, bytes, arena_bytes) && lies_in(output, bytes, arena_bytes);
}

ByteSpan HostLoan::pages(std::uint64_t bytes) const {
  constexpr std::uint64_t kPage = transport::Arena::kPage;
  if (!lends_output()) return {};
  const std::uint64_t first = (output + kPage - 1) / kPage * kPage;
  const std::uint64_t end = (output + bytes) / kPage * kPage;
  return end > first ? ByteSpan{first - output, end - first} : ByteSpan{};
}

HostLoan loan_of(const HostOperation& operation, std::span<const std::byte> arena) {
  HostLoan loan;
  if (operation.layout.is_small()) return loan;
  loan.input = offset_in(arena, operation.input);
  if (!operation.layout.crosses()) loan.output = offset_in(arena, operation.output);
  return loan;
}

}  // namespace fasthorovod::ops
