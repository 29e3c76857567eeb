// The receiving direction of one flow: header, then payload (straight into place, or through a
// scratch of this flow), with the next header in the same recvmsg as the end of a payload. After a
// rest a recvmsg also takes the first KiB of what follows the header, so that small frames cost one
// call together.
//
// Thread: owner (the lane). It borrows the socket, the work and the counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/result.h"
#include "transport/chunk_work.h"
#include "transport/lane_counters.h"

namespace fasthorovod::transport {

class FlowReceiver final {
 public:
  enum class State : std::uint8_t {
    kOpen,    // waits for bytes
    kParked,  // holds a header whose chunk may not start yet, and reads nothing
    kEnded,   // the peer ended its direction between two frames
    kFailed,  // the peer broke off, or sent what no peer sends: error() says it
  };

  FlowReceiver(int peer, int fd, ChunkWork& work, LaneCounters& counters);
  ~FlowReceiver();
  FlowReceiver(const FlowReceiver&) = delete;
  FlowReceiver& operator=(const FlowReceiver&) = delete;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const core::Error& error() const { return error_; }
  /// Parked only until another process has answered.
  [[nodiscard]] bool asked() const {
    return state_ == State::kParked && arrival_.kind == Arrival::Kind::kAsked;
  }

  /// Reads what is there, as far as fairness allows. Only when open.
  void receive();

  /// Asks again whether the parked chunk may start. Only when parked.
  void retry();

 private:
  enum class Phase : std::uint8_t { kHeader, kInto, kAbsorb };

  std::size_t read_some(std::span<std::byte> payload, std::span<std::byte> header,
                        std::span<std::byte> ahead);
  bool read_on(std::size_t& room);
  void use_ahead();
  void take(std::size_t of_payload, std::size_t of_header);
  [[nodiscard]] std::span<std::byte> payload_space(std::size_t most);
  void take_payload(std::size_t count);
  void absorb(std::size_t available);
  void open_frame();
  void offer();
  void begin(const Arrival& arrival);
  void finish_chunk();
  void end_of_stream();
  void fail(core::Error error);

  const int peer_;
  const int fd_;
  ChunkWork& work_;
  LaneCounters& counters_;

  State state_ = State::kOpen;
  Phase phase_ = Phase::kHeader;
  core::Error error_;

  FrameHeaderBytes header_bytes_{};
  std::size_t header_read_ = 0;
  FrameHeader header_;

  Arrival arrival_;
  std::size_t payload_left_ = 0;  // still in the socket
  std::size_t absorbed_ = 0;      // kAbsorb: handed over already
  std::size_t carried_ =
      0;  // kAbsorb: bytes at the start of the scratch that await the rest of their granule
  std::span<const std::byte> ahead_;  // read, and not used yet
  struct Ahead;
  const std::unique_ptr<Ahead> ahead_bytes_;
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;  // made for the first chunk that needs it
};

}  // namespace fasthorovod::transport
