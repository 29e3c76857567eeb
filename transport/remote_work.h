// The ChunkWork of a lane in an auxiliary process: it asks the rank's chunk board through a mailbox
// and never waits for the answer.
//
//   take_for(peer, flow) returns a chunk that was assigned to the flow, or posts one request a peer
//   and returns nothing. When the rank answers that the flow is to leave the next chunk to others,
//   other flows of this lane may ask, and after a millisecond the same one again.
//   arrive(...) posts the header and parks the flow; the answer is there when the lane asks again.
//   absorb(...) adds where the answer said, in the arena; where the sum lies in the rank's private
//   memory the answer is a staging block to read into, and the rank does the rest.
//
// The owner calls hear() before each turn of the lane, and wakes the lane when it returned true.
// What is said wakes the rank with flush(), before the lane sleeps.
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
#include <vector>

#include "core/clock.h"
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

  /// Of the lane's flows, by the numbers that the rank gave them; kNoFlow is several.
  void begin(int peer, std::uint32_t flow) { flows_[peer].push_back(flow); }
  /// It can not send any more. Once.
  void give_up(int peer, std::uint32_t flow);
  std::optional<OutgoingChunk> take_for(int peer, std::uint32_t flow);
  /// As of FlowSeat. The rank hears of it at once.
  void ask_ahead(int peer, std::uint32_t flow);
  /// take_for() would return one.
  [[nodiscard]] bool has_chunk(int peer, std::uint32_t flow) const;
  /// As of FlowSeat: others have been assigned what there is, or the rank said so just now.
  [[nodiscard]] bool leaves_next(int peer, std::uint32_t flow) const;

  struct Look {
    core::TimePoint at;
    std::uint64_t drained = 0;
    bool dry = false;
  };
  /// The rank hears of it with whatever is said next.
  void look(const Look& look, std::uint32_t flow);

  using ChunkWork::take;
  std::optional<OutgoingChunk> take(int peer, TakeOrder /*order*/) override {
    return take_for(peer, kNoFlow);
  }
  void join_next(int /*peer*/, OutgoingChunk& /*chunk*/, std::uint64_t /*most*/) override {}
  [[nodiscard]] bool has_work(int peer) const override;
  /// What is left is known to the rank only.
  [[nodiscard]] Backlog backlog(int /*peer*/) const override { return {}; }
  void sent(const ChunkTicket& ticket) override;
  core::Result<Arrival> arrive(int peer, const FrameHeader& header) override;
  void absorb(const ChunkTicket& ticket, std::uint64_t offset,
              std::span<const std::byte> piece) override;
  void received(const ChunkTicket& ticket) override;
  void flow_ended(int peer, const FlowEnd& end) override;
  void flush() override;

 private:
  struct Assigned {
    OutgoingChunk chunk;
    std::uint32_t flow = kNoFlow;
  };
  struct Peer {
    std::optional<std::uint32_t> asks;  // a flow whose request stands
    bool nothing = false;               // and was answered: nothing just now
    bool gives_way = false;             // that flow has had its turn; another may ask in its place
    std::uint32_t last = kNoFlow;       // that took a chunk
    std::deque<Assigned> assigned;
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
  void leave(const AuxAnswer& answer);
  [[nodiscard]] const std::vector<std::uint32_t>& flows_to(int peer) const;
  [[nodiscard]] bool may_ask(int peer) const;
  [[nodiscard]] bool may_carry(int peer, const Assigned& assigned, std::uint32_t flow) const;
  core::Status admit(const AuxAnswer& answer);
  [[nodiscard]] core::Result<std::span<std::byte>> place(const AuxAnswer& answer) const;
  void ask(int peer, std::uint32_t flow);
  void ring();

  const Arena& arena_;
  AuxMailbox& mailbox_;
  const Lane* lane_ = nullptr;
  const FileDescriptor bell_;
  const AddFunction add_;
  RingWriter<AuxRequest> requests_;
  RingReader<AuxAnswer> answers_;
  bool unheard_ = false;           // the rank sleeps, and has not been woken for what was said
  std::vector<AuxRequest> looks_;  // not said yet
  std::map<int, Peer> peers_;
  std::map<int, std::vector<std::uint32_t>> flows_;  // by peer: those that can send
  std::map<std::uint32_t, core::TimePoint> leave_;   // flows that were told so, until when
  std::uint32_t last_arrival_ = 0;
  std::map<ArrivalKey, Asked> asked_;
  std::map<std::uint32_t, Target> targets_;  // of arrivals that are added in place
};

}  // namespace fasthorovod::transport
