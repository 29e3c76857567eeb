// What a rank and one of its auxiliaries say to each other about chunks, and the memory in which
// they say it: two rings in the rank's arena, and a table of flows. The chunk board itself stays in
// the rank's private memory, so that an auxiliary that is killed or stopped never holds a lock of
// the rank.
//
// Numbers (`id`) name chunks that leave, in answers to kWant, and arrivals, in kArrive; each side
// counts its own. Places are offsets in the arena. Both sides check what they read: kinds, numbers,
// places, sizes.
//
// Flows are numbered by the rank. For those below kSharedFlows the rank chooses which are in use
// and which chunks they leave to others, whichever lanes those are on; further ones are always in
// use and leave nothing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "transport/frame.h"
#include "transport/shared_ring.h"

namespace fasthorovod::transport {

/// An error in shared memory; words beyond its room are cut off.
struct SharedError {
  static constexpr std::size_t kRoom = 244;

  std::uint32_t code = 0;
  std::int32_t culprit = -1;
  std::uint32_t length = 0;
  std::array<char, kRoom> text = {};

  static SharedError from(const core::Error& error) {
    SharedError shared{.code = static_cast<std::uint32_t>(error.code), .culprit = error.culprit};
    shared.length = static_cast<std::uint32_t>(std::min(error.message.size(), kRoom));
    std::copy_n(error.message.begin(), shared.length, shared.text.begin());
    return shared;
  }

  [[nodiscard]] core::Error unpack() const {
    const auto last = static_cast<std::uint32_t>(core::ErrorCode::kInternal);
    return {static_cast<core::ErrorCode>(std::min(code, last)),
            std::string(text.data(), std::min<std::size_t>(length, kRoom)), culprit};
  }
};

inline constexpr std::uint32_t kSharedFlows = 512;  // of an auxiliary
inline constexpr std::uint32_t kNoFlow = ~std::uint32_t{0};

/// From the auxiliary.
struct AuxRequest {
  enum class Kind : std::uint32_t {
    kWant = 1,       // `flow` to `peer` could take a chunk
    kSent = 2,       // chunk `id` has left
    kArrive = 3,     // `header` came from `peer`; the answer is to `id`
    kReceived = 4,   // the payload of arrival `id` is in its place
    kFlowEnded = 5,  // a flow to `peer`, as `clean` and `error` say
    kAlive = 6,      // the answer to kAskAlive
    kLook = 7,       // `flow` took a chunk: `at`, `drained` and `dry` as of GoodputMeter
    kGiveUp = 8,     // `flow` can not send any more
  };

  Kind kind{};
  std::int32_t peer = -1;
  std::uint32_t id = 0;
  std::uint32_t clean = 0;
  std::uint32_t flow = kNoFlow;
  std::uint32_t dry = 0;
  std::uint64_t drained = 0;
  std::int64_t at = 0;  // in ticks of core::Clock, which all processes of a host share
  FrameHeaderBytes header{};
  SharedError error = {};
};

/// From the rank.
struct AuxAnswer {
  enum class Kind : std::uint32_t {
    kChunk = 1,     // to kWant: send `header` and the payload at the place to `peer` on `flow`, as
                    // chunk `id`
    kNothing = 2,   // to kWant: nothing just now; a chunk will come as soon as there is one
    kInto = 3,      // to kArrive: read the payload into the place
    kAdd = 4,       // to kArrive: add the payload to the place, as `how` says
    kParked = 5,    // to kArrive: not yet; another answer will come
    kRefused = 6,   // to kArrive: `error` of the peer
    kAskAlive = 7,  // answer kAlive
    kForget = 8,    // no flow to `peer` is left: what was asked and assigned for it is void
    kLeave = 9,     // to kWant: the next chunk is another flow's; ask again, but not at once
  };

  Kind kind{};
  std::int32_t peer = -1;
  std::uint32_t id = 0;
  std::uint32_t how = 0;
  std::uint32_t flow = kNoFlow;
  std::uint64_t offset = 0;  // the place: where in the arena
  std::uint64_t bytes = 0;   // the place: how much
  FrameHeaderBytes header{};
  SharedError error = {};
};

/// LaneStatistics as the auxiliary publishes them. Each stands alone.
struct SharedStatistics {
  std::atomic<std::uint64_t> bytes_sent{0};
  std::atomic<std::uint64_t> bytes_received{0};
  std::atomic<std::uint64_t> chunks_sent{0};
  std::atomic<std::uint64_t> chunks_received{0};
  std::atomic<std::uint64_t> turns{0};
};

/// A flow below kSharedFlows. Each value stands alone.
struct alignas(64) SharedFlow {
  static_assert(std::atomic<bool>::is_always_lock_free);
  static_assert(std::atomic<double>::is_always_lock_free);

  std::atomic<bool> in_use{false};  // set by the rank, like no other one
  // As of FlowRate and FlowSender, when the flow last could take a chunk.
  std::atomic<double> rate{0};
  std::atomic<std::int64_t> last_busy{0};  // in ticks of core::Clock
  std::atomic<std::uint64_t> held{0};
};

/// In the arena, page aligned; made by the rank before the auxiliary hears of it.
struct AuxMailbox {
  SharedRing<AuxRequest> requests;
  SharedRing<AuxAnswer> answers;
  SharedStatistics statistics;
  std::array<SharedFlow, kSharedFlows> flows;
};

}  // namespace fasthorovod::transport
