// Matches the messages that came for one group with the receives that wait: by tag, and by sender
// where the receive names one, the oldest first on both sides.
//
// Announcements of one sender count in its order, also when they came over several flows and
// overtook each other. Pure bookkeeping. Thread: the MessageDoor's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "ops/message_job.h"

namespace fasthorovod::ops {

/// A message that a rank wants to send here.
struct Announcement {
  int sender = 0;              // world rank
  std::uint64_t sequence = 0;  // names it on the wire
  std::uint32_t tag = 0;
  std::uint64_t ordinal = 0;  // its place among all from this sender to this rank, from 1
  std::uint64_t bytes = 0;
  std::string title;
  MessagePtr local;                    // the sender is this rank itself
  std::optional<core::Error> refused;  // the sender has given it up
};

std::vector<std::byte> encode(const Announcement& announcement);
/// Fills in what travels in the payload; false when the bytes make no sense.
bool decode(std::span<const std::byte> bytes, Announcement& announcement);

class Mailbox final {
 public:
  static constexpr std::size_t kMost = 1U << 16;

  struct Match {
    MessagePtr receive;
    Announcement announcement;
  };

  /// The number of the next message to a rank.
  std::uint64_t next_ordinal(int to) { return ++sent_[to]; }

  /// A receive: the announcement it takes, or it waits.
  std::optional<Announcement> post(const MessagePtr& receive);

  /// An announcement came: the receives it, and those it held up, find.
  std::vector<Match> announce(Announcement announcement);

  /// False: too many messages wait that nobody receives.
  [[nodiscard]] bool has_room() const { return waiting_ < kMost; }

  /// The sender gave a message up that is not matched yet.
  void refuse(std::uint64_t sequence, const core::Error& error);

  /// Takes a waiting receive back. False: it does not wait.
  bool withdraw(const MessagePtr& receive);

  /// Takes the receives that wait for this sender alone.
  std::vector<MessagePtr> take_receives_from(int sender);

  /// Takes everything that waits: receives, and messages of this rank to itself.
  std::vector<MessagePtr> take_all();

 private:
  struct Sender {
    std::uint64_t heard = 0;                          // announcements up to this one count
    std::map<std::uint64_t, Announcement> overtaken;  // came too early
  };

  void place(Announcement announcement, std::vector<Match>& matches);

  std::map<std::uint32_t, std::deque<MessagePtr>> receives_;         // by tag
  std::map<std::uint32_t, std::deque<Announcement>> announcements_;  // by tag
  std::map<int, Sender> senders_;
  std::map<int, std::uint64_t> sent_;
  std::map<std::uint64_t, core::Error> refused_;  // before it was announced
  std::size_t waiting_ = 0;                       // announcements
};

}  // namespace fasthorovod::ops
