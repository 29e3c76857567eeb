// The ChunkWork of a lane in an auxiliary process: it asks the rank's chunk board through a mailbox
// and never waits for the answer.
//
//   take(peer) returns a chunk that was assigned, or posts one request a peer and returns nothing.
//   arrive(...) posts the header and parks the flow; the answer is there when the lane asks again.
//   absorb(...) adds where the answer said, in the arena; where the sum lies in the rank's private
//   memory the answer is a staging block to read into, and the rank does the rest.
//
// The owner calls hear() before each turn of the lane, and wakes the lane when it returned true.
//
// Thread: owner (the lane's).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/result.h"
#include "transport/arena.h"
#include "transport/aux_mailbox.h"
#include "transport/chunk_work.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

/// Adds a piece to where it belongs, as Arrival::how says. False when `how` means nothing.
using AddFunction = std::function<bool(std::span<std::byte> to, std::span<const std::byte> piece,
                                       std::uint16_t how)>;

class Lane;

class RemoteWork final : public ChunkWork {
 public:
  /// `bell` (an eventfd) wakes the rank. Arena and mailbox outlive this.
  RemoteWork(const Arena& arena, AuxMailbox& mailbox, FileDescriptor bell, AddFunction add);

  /// Takes in the rank's answers. True when there were any; an error when the rank writes nonsense.
  core::Result<bool> hear();

  /// Before sleeping: false when there is something to hear.
  [[nodiscard]] bool arm() { return answers_.arm(); }

  /// Whose counters the rank sees; from now on they are never behind what it hears.
  void count(const Lane& lane) { lane_ = &lane; }
  void publish();

  std::optional<OutgoingChunk> take(int peer) override;
  [[nodiscard]] bool has_work(int peer) const override;
  /// What is left is known to the rank only.
  [[nodiscard]] Backlog backlog(int /*peer*/) const override { return {}; }
  void sent(const ChunkTicket& ticket) override;
  core::Result<Arrival> arrive(int peer, const FrameHeader& header) override;
  void absorb(const ChunkTicket& ticket, std::uint64_t offset,
              std::span<const std::byte> piece) override;
  void received(const ChunkTicket& ticket) override;
  void flow_ended(int peer, const FlowEnd& end) override;

 private:
  struct Peer {
    bool wants = false;    // a request stands
    bool nothing = false;  // and was answered: nothing just now
    std::deque<OutgoingChunk> assigned;
  };
  using ArrivalKey = std::pair<int, FrameHeaderBytes>;
  struct Asked {
    std::uint32_t id = 0;
    bool parked = false;
    std::optional<core::Result<Arrival>> answer;
  };
  struct Target {
    std::span<std::byte> to;
    std::uint16_t how = 0;
  };

  void post(const AuxRequest& request);
  core::Status hear(const AuxAnswer& answer);
  core::Status assign(const AuxAnswer& answer);
  core::Status admit(const AuxAnswer& answer);
  [[nodiscard]] core::Result<std::span<std::byte>> place(const AuxAnswer& answer) const;
  void ring();

  const Arena& arena_;
  AuxMailbox& mailbox_;
  const Lane* lane_ = nullptr;
  const FileDescriptor bell_;
  const AddFunction add_;
  RingWriter<AuxRequest> requests_;
  RingReader<AuxAnswer> answers_;
  std::map<int, Peer> peers_;
  std::uint32_t last_arrival_ = 0;
  std::map<ArrivalKey, Asked> asked_;
  std::map<std::uint32_t, Target> targets_;  // of arrivals that are added in place
};

}  // namespace fasthorovod::transport
