// The handshake with which every connection begins: both ends prove that they know the job secret,
// and who they are, before anything is stored on their word. Pure state machines: bytes in, bytes
// out; sockets are the caller's.
//
//   answerer -> dialler   challenge   magic, version, nonce                                     44
//   bytes dialler -> answerer   claim       magic, version, job, epoch, purpose, ranks, flow,
//   nonce, MAC  113 bytes answerer -> dialler   answer      magic, version, verdict, epoch, MAC 49
//   bytes dialler -> answerer   confirm     one byte; nothing is handed on before it came
//
// Both MACs are HMAC-SHA256 under keys of the secret, one for each role, over challenge and claim;
// the answer's covers the verdict too. So a proof fits one pair of nonces, one role, one purpose,
// one pair of ranks, one flow, one job and one epoch, and is useless for anything else: neither a
// replay nor a reflection nor a detour to another rank works. The dialler proves first, so that a
// stranger learns nothing but the version. Frames have fixed sizes, and magic and version stand
// first in every version, so that versions can name each other.
//
// What both ends know afterwards also yields one key a direction, for the MACs of channel.h.
//
// Thread: owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

inline constexpr std::uint32_t kProtocolVersion = 3;

/// What a connection is for. Wire values.
enum class Purpose : std::uint8_t { kControl = 1, kFlow = 2, kStore = 3 };

/// Why a connection was refused. Wire values.
enum class Verdict : std::uint8_t {
  kWelcome = 0,
  kSecret = 1,   // the proof is wrong
  kJob = 2,      // right secret, another job
  kVersion = 3,  // another protocol version
  kEpoch = 4,    // right job, another epoch
  kRank = 5,     // not the rank that was dialled
  kGarbage = 6,  // not our protocol, or a purpose that is not served here
  kBusy = 7,     // not now: an earlier attempt of the same peer is still open; try again
  kTaken = 8,    // the dialling rank, or flow, is there already, or is none of this world
};

std::string_view to_string(Verdict verdict);

/// The rank written where there is none, as for the store.
inline constexpr int kNoRank = -1;

/// Who dials whom, and for what.
struct Claim {
  core::JobId job{};
  std::uint32_t epoch = 0;
  Purpose purpose = Purpose::kControl;
  int dialling_rank = kNoRank;
  int dialled_rank = kNoRank;
  std::uint32_t flow = 0;

  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Keys of one connection, one a direction.
struct SessionKeys {
  Mac of_dialler{};   // for what the dialling side sends
  Mac of_answerer{};  // for what the dialled side sends
};

using Nonce = std::array<std::byte, 32>;
core::Result<Nonce> make_nonce();

inline constexpr std::size_t kPrefixBytes = 12;  // magic and version
inline constexpr std::size_t kChallengeBytes = kPrefixBytes + 32;
inline constexpr std::size_t kClaimBytes = kPrefixBytes + 16 + 4 + 1 + 4 + 4 + 4 + 32 + 32;
inline constexpr std::size_t kAnswerBytes = kPrefixBytes + 1 + 4 + 32;
inline constexpr std::byte kConfirm{0xC1};

/// The dialling side: take_challenge, send claim_frame(), take_answer; when that is a welcome, send
/// kConfirm.
class DiallingHandshake final {
 public:
  DiallingHandshake(const Secret& secret, const Claim& claim, const Nonce& nonce);

  /// What came: kWelcome (go on), kGarbage, or kVersion. In the last case claim_frame() is still
  /// worth sending, so that the other side can name both versions too.
  Verdict take_challenge(std::span<const std::byte, kChallengeBytes> bytes);

  /// The claim with its proof.
  [[nodiscard]] std::vector<std::byte> claim_frame() const;

  /// The verdict, whose MAC was checked where it can have one. kSecret also when the answerer could
  /// not prove itself.
  Verdict take_answer(std::span<const std::byte, kAnswerBytes> bytes);

  /// After take_answer: what the answerer said of itself.
  [[nodiscard]] std::uint32_t remote_version() const { return remote_version_; }
  [[nodiscard]] std::uint32_t remote_epoch() const { return remote_epoch_; }

  /// After a welcome.
  [[nodiscard]] SessionKeys keys() const;

  /// A sentence for people about a refusal by `verdict`, with both values where two differ.
  [[nodiscard]] std::string explain(Verdict verdict) const;

 private:
  const Secret& secret_;
  const Claim claim_;
  const Nonce nonce_;
  std::vector<std::byte> transcript_;
  std::uint32_t remote_version_ = 0;
  std::uint32_t remote_epoch_ = 0;
};

/// The dialled side: send challenge(), take_prefix, take_claim, then answer() with the verdict
/// reached.
class AnsweringHandshake final {
 public:
  /// Who answers. Without an epoch every epoch is welcome (the store lives longer than a world).
  struct Self {
    core::JobId job{};
    std::optional<std::uint32_t> epoch;
    int rank = kNoRank;
  };

  AnsweringHandshake(const Secret& secret, const Self& self, const Nonce& nonce);

  [[nodiscard]] const std::vector<std::byte>& challenge() const { return transcript_; }

  /// The first bytes of a claim: kWelcome when the rest is worth reading.
  Verdict take_prefix(std::span<const std::byte, kPrefixBytes> bytes);

  /// The rest: kWelcome when the dialler proved itself and means this process. Whether it may come
  /// in (a rank that is free, a purpose that is served) is then the caller's to say.
  Verdict take_claim(std::span<const std::byte, kClaimBytes - kPrefixBytes> bytes);

  /// After take_claim was not kSecret.
  [[nodiscard]] const Claim& claim() const { return claim_; }

  /// The frame that tells the verdict.
  [[nodiscard]] std::vector<std::byte> answer(Verdict verdict) const;

  /// After take_claim.
  [[nodiscard]] SessionKeys keys() const;

  /// A sentence for the log about a refusal, with both values where two differ.
  [[nodiscard]] std::string explain(Verdict verdict) const;

 private:
  const Secret& secret_;
  const Self self_;
  std::vector<std::byte> transcript_;
  Claim claim_;
  std::uint32_t remote_version_ = 0;
  bool proven_ = false;
};

}  // namespace fasthorovod::transport
