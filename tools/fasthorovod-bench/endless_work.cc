#include "tools/fasthorovod-bench/endless_work.h"

#include "ops/how_to_add.h"
#include "ops/reduce.h"

namespace fasthorovod::tools {

using transport::Arrival;

std::optional<transport::OutgoingChunk> EndlessWork::take(int /*peer*/,
                                                          transport::TakeOrder /*order*/) {
  const std::lock_guard lock(mutex_);
  transport::OutgoingChunk chunk;
  chunk.payload = from_.subspan(next(sent_at_), load_.chunk_bytes);
  return chunk;
}

core::Result<Arrival> EndlessWork::arrive(int /*peer*/, const transport::FrameHeader& header) {
  if (header.payload_bytes != load_.chunk_bytes) {
    return core::Error{core::ErrorCode::kProtocol, "a chunk of another size"};
  }
  const std::lock_guard lock(mutex_);
  const std::size_t at = next(received_at_);
  Arrival arrival;
  arrival.into = into_.subspan(at, load_.chunk_bytes);
  arrival.ticket.operation = at;
  // Of all chunks that part is added, evenly.
  added_ += load_.added;
  arrival.kind = added_ >= 1 ? Arrival::Kind::kAbsorb : Arrival::Kind::kInto;
  if (arrival.kind == Arrival::Kind::kInto) return arrival;
  added_ -= 1;
  arrival.how = ops::how_to_add(core::DataType::kFloat32, core::Reduction::kSum);
  return arrival;
}

void EndlessWork::absorb(const transport::ChunkTicket& ticket, std::uint64_t offset,
                         std::span<const std::byte> piece) {
  ops::reduce_into(into_.data() + ticket.operation + offset, piece.data(),
                   piece.size() / sizeof(float), core::DataType::kFloat32, core::Reduction::kSum);
}

std::size_t EndlessWork::next(std::size_t& at) const {
  const bool fits = at + 2 * load_.chunk_bytes <= into_.size();
  return at = fits ? at + load_.chunk_bytes : 0;
}

}  // namespace fasthorovod::tools
