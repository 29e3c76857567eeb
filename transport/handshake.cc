#include "transport/handshake.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/wire.h"

namespace fasthorovod::transport {
namespace {

using core::WireReader;
using core::WireWriter;

constexpr std::string_view kMagic = "FasthrvD";
constexpr std::string_view kDialler = "handshake: dialler";
constexpr std::string_view kAnswerer = "handshake: answerer";
constexpr std::string_view kSessionDialler = "session: dialler to answerer";
constexpr std::string_view kSessionAnswerer = "session: answerer to dialler";

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void write_prefix(WireWriter& writer) {
  writer.bytes(std::as_bytes(std::span(kMagic)));
  writer.u32(kProtocolVersion);
}

// Reads magic and version; whether they are ours.
Verdict read_prefix(WireReader& reader, std::uint32_t& version) {
  if (!std::ranges::equal(reader.bytes(kMagic.size()), std::as_bytes(std::span(kMagic)))) {
    return Verdict::kGarbage;
  }
  version = reader.u32();
  return version == kProtocolVersion ? Verdict::kWelcome : Verdict::kVersion;
}

void write_claim(WireWriter& writer, const Claim& claim) {
  writer.bytes(claim.job);
  writer.u32(claim.epoch);
  writer.u8(static_cast<std::uint8_t>(claim.purpose));
  writer.u32(static_cast<std::uint32_t>(claim.dialling_rank));
  writer.u32(static_cast<std::uint32_t>(claim.dialled_rank));
  writer.u32(claim.flow);
}

Claim read_claim(WireReader& reader) {
  Claim claim;
  std::ranges::copy(reader.bytes(claim.job.size()), claim.job.begin());
  claim.epoch = reader.u32();
  claim.purpose = static_cast<Purpose>(reader.u8());
  claim.dialling_rank = static_cast<int>(reader.u32());
  claim.dialled_rank = static_cast<int>(reader.u32());
  claim.flow = reader.u32();
  return claim;
}

Mac read_mac(WireReader& reader) {
  Mac mac{};
  std::ranges::copy(reader.bytes(mac.size()), mac.begin());
  return mac;
}

// The part of an answer before its MAC.
std::vector<std::byte> answer_body(Verdict verdict, std::uint32_t epoch) {
  WireWriter writer;
  write_prefix(writer);
  writer.u8(static_cast<std::uint8_t>(verdict));
  writer.u32(epoch);
  return std::move(writer).take();
}

Mac answer_mac(const Secret& secret, std::vector<std::byte> transcript,
               std::span<const std::byte> body) {
  append(transcript, body);
  return secret.mac(kAnswerer, transcript);
}

SessionKeys session_keys(const Secret& secret, std::span<const std::byte> transcript) {
  return {secret.mac(kSessionDialler, transcript), secret.mac(kSessionAnswerer, transcript)};
}

// A refusal before the proof cannot carry one: with another secret, or another version, there is
// nothing to compare.
bool is_unproven(Verdict verdict) {
  return verdict == Verdict::kSecret || verdict == Verdict::kVersion ||
         verdict == Verdict::kGarbage;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWelcome:
      return "welcome";
    case Verdict::kSecret:
      return "secret";
    case Verdict::kJob:
      return "job";
    case Verdict::kVersion:
      return "version";
    case Verdict::kEpoch:
      return "epoch";
    case Verdict::kRank:
      return "rank";
    case Verdict::kGarbage:
      return "garbage";
    case Verdict::kBusy:
      return "busy";
    case Verdict::kTaken:
      return "taken";
  }
  return "unknown";
}

core::Result<Nonce> make_nonce() {
  Nonce nonce{};
  if (auto status = fill_random(nonce); !status) return std::move(status).error();
  return nonce;
}

DiallingHandshake::DiallingHandshake(const Secret& secret, const Claim& claim, const Nonce& nonce)
    : secret_(secret), claim_(claim), nonce_(nonce) {}

Verdict DiallingHandshake::take_challenge(std::span<const std::byte, kChallengeBytes> bytes) {
  WireReader reader(bytes);
  const Verdict verdict = read_prefix(reader, remote_version_);
  transcript_.assign(bytes.begin(), bytes.end());
  WireWriter writer;
  write_prefix(writer);
  write_claim(writer, claim_);
  writer.bytes(nonce_);
  append(transcript_, std::move(writer).take());
  return verdict;
}

std::vector<std::byte> DiallingHandshake::claim_frame() const {
  std::vector<std::byte> frame(transcript_.begin() + kChallengeBytes, transcript_.end());
  append(frame, secret_.mac(kDialler, transcript_));
  return frame;
}

Verdict DiallingHandshake::take_answer(std::span<const std::byte, kAnswerBytes> bytes) {
  WireReader reader(bytes);
  if (const Verdict prefix = read_prefix(reader, remote_version_); prefix != Verdict::kWelcome) {
    return prefix;
  }
  const auto verdict = static_cast<Verdict>(reader.u8());
  remote_epoch_ = reader.u32();
  if (verdict > Verdict::kTaken) return Verdict::kGarbage;
  if (is_unproven(verdict)) return verdict;
  const Mac expected = answer_mac(secret_, transcript_, answer_body(verdict, remote_epoch_));
  return equal(expected, read_mac(reader)) ? verdict : Verdict::kSecret;
}

SessionKeys DiallingHandshake::keys() const { return session_keys(secret_, transcript_); }

std::string DiallingHandshake::explain(Verdict verdict) const {
  switch (verdict) {
    case Verdict::kWelcome:
      return "welcome";
    case Verdict::kSecret:
      return "the job secrets differ";
    case Verdict::kJob:
      return "it belongs to another job with the same secret";
    case Verdict::kVersion:
      return fmt::format("it speaks protocol version {}, this rank version {}", remote_version_,
                         kProtocolVersion);
    case Verdict::kEpoch:
      return fmt::format("it is in epoch {}, this rank in epoch {}", remote_epoch_, claim_.epoch);
    case Verdict::kRank:
      return fmt::format("it is not rank {}", claim_.dialled_rank);
    case Verdict::kGarbage:
      return "what answers there is not a rank of FastHorovod";
    case Verdict::kBusy:
      return "it still holds an earlier attempt of this rank";
    case Verdict::kTaken:
      return fmt::format("rank {} is there already, or has no place there", claim_.dialling_rank);
  }
  return "unknown";
}

AnsweringHandshake::AnsweringHandshake(const Secret& secret, const Self& self, const Nonce& nonce)
    : secret_(secret), self_(self) {
  WireWriter writer;
  write_prefix(writer);
  writer.bytes(nonce);
  transcript_ = std::move(writer).take();
}

Verdict AnsweringHandshake::take_prefix(std::span<const std::byte, kPrefixBytes> bytes) {
  WireReader reader(bytes);
  const Verdict verdict = read_prefix(reader, remote_version_);
  append(transcript_, bytes);
  return verdict;
}

Verdict AnsweringHandshake::take_claim(
    std::span<const std::byte, kClaimBytes - kPrefixBytes> bytes) {
  append(transcript_, bytes.first(bytes.size() - sizeof(Mac)));
  WireReader reader(bytes);
  claim_ = read_claim(reader);
  reader.bytes(sizeof(Nonce));
  proven_ = equal(secret_.mac(kDialler, transcript_), read_mac(reader));
  if (!proven_) return Verdict::kSecret;
  if (claim_.job != self_.job) return Verdict::kJob;
  if (self_.epoch && claim_.epoch != *self_.epoch) return Verdict::kEpoch;
  if (claim_.dialled_rank != self_.rank) return Verdict::kRank;
  return Verdict::kWelcome;
}

std::vector<std::byte> AnsweringHandshake::answer(Verdict verdict) const {
  auto frame = answer_body(verdict, self_.epoch.value_or(claim_.epoch));
  const Mac mac = proven_ ? answer_mac(secret_, transcript_, frame) : Mac{};
  append(frame, mac);
  return frame;
}

SessionKeys AnsweringHandshake::keys() const { return session_keys(secret_, transcript_); }

std::string AnsweringHandshake::explain(Verdict verdict) const {
  switch (verdict) {
    case Verdict::kWelcome:
      return "welcome";
    case Verdict::kSecret:
      return "it does not know the job secret";
    case Verdict::kJob:
      return "it belongs to another job with the same secret";
    case Verdict::kVersion:
      return fmt::format("it speaks protocol version {}, this rank version {}", remote_version_,
                         kProtocolVersion);
    case Verdict::kEpoch:
      return fmt::format("rank {} is in epoch {}, this rank in epoch {}", claim_.dialling_rank,
                         claim_.epoch, self_.epoch.value_or(0));
    case Verdict::kRank:
      return fmt::format("rank {} dialled rank {}, but this is rank {}", claim_.dialling_rank,
                         claim_.dialled_rank, self_.rank);
    case Verdict::kGarbage:
      return "it does not speak the protocol";
    case Verdict::kBusy:
      return fmt::format("an earlier attempt of rank {} is still open", claim_.dialling_rank);
    case Verdict::kTaken:
      return fmt::format("it says it is rank {}, which is there already or has no place here",
                         claim_.dialling_rank);
  }
  return "unknown";
}

}  // namespace fasthorovod::transport
