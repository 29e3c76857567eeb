#include "ops/message_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/mixer.h"
#include "ops/algorithm_table.h"

namespace fasthorovod::ops {
namespace {

// An empty message is one empty chunk, so that its end is seen.
std::vector<ByteSpan> chunks_of_message(std::uint64_t bytes, int flows) {
  const std::uint64_t chunk = default_chunk_bytes(bytes, 1, flows);
  std::vector<ByteSpan> chunks{{0, std::min(chunk, bytes)}};
  for (std::uint64_t done = chunk; done < bytes; done += chunk) {
    chunks.push_back({done, std::min(chunk, bytes - done)});
  }
  return chunks;
}

std::uint32_t fingerprint_of(const MessageJob& job) {
  core::Mixer mixer;
  mixer.add(job.message.bytes.size());
  mixer.add(job.message.tag);
  return mixer.folded();
}

}  // namespace

std::string title_of(const MessageJob& job, const core::World& world) {
  if (!job.message.title.empty()) return job.message.title;
  return fmt::format("{} of {} bytes {} {}, tag {}", job.sends ? "send" : "receive",
                     job.message.bytes.size(), job.sends ? "to" : "from",
                     job.peer < 0 ? "any rank" : world.describe(job.peer), job.message.tag);
}

Operation transfer_of(const MessageJob& job, const core::World& world, int flows) {
  Operation operation;
  operation.epoch = world.epoch;
  operation.group = wire_group(job.group->id, Door::kMessage);
  operation.sequence = job.sequence;
  operation.fingerprint = fingerprint_of(job);
  operation.title = title_of(job, world);
  operation.members = job.group->members;
  operation.buffer = job.message.bytes;
  const int peer = job.group->position_of(job.peer);
  for (const ByteSpan& chunk : chunks_of_message(job.message.bytes.size(), flows)) {
    if (job.sends) {
      add_send(operation.schedule, peer, chunk, 0);
    } else {
      add_receive(operation.schedule, peer, chunk, 0, Action::kCopy);
    }
  }
  return operation;
}

}  // namespace fasthorovod::ops
