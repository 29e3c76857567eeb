#include "test/transport/lane_fixture.h"

#include <algorithm>

namespace fasthorovod::transport {

std::vector<std::byte> frame(std::uint64_t sequence, std::uint32_t transfer, std::size_t size,
                             FakeChunkWork::Mode mode) {
  const auto header = encode({.sequence = sequence,
                              .transfer = transfer,
                              .hop = static_cast<std::uint32_t>(mode),
                              .payload_bytes = size});
  const auto payload = pattern(sequence, transfer, size);
  std::vector<std::byte> bytes(kFrameHeaderBytes + size);
  std::ranges::copy(header, bytes.begin());
  std::ranges::copy(payload, bytes.begin() + kFrameHeaderBytes);
  return bytes;
}

}  // namespace fasthorovod::transport
