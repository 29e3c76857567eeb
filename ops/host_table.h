// What a rank tells the other ranks of its host, at the beginning of its arena: the operations it
// works on together with them, and how far it is with each. Only the owner of an arena writes its
// table; its bell may be rung by all.
//
// An entry is published as a whole and taken back as a whole: a mate that looks for an operation
// finds all of its entry or nothing. Counters that are read from an entry that was taken back
// meanwhile belong to another operation; the owner takes an entry back only when no mate depends on
// them any more (see host_runner.h).
//
// Thread: publish, fail, retire from the owner's; find and the readers of an entry from any. All
// loads and stores that the bell's promise rests on are seq_cst; what an entry says stands before
// its state, which makes it valid.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/host_bell.h"
#include "ops/host_layout.h"
#include "ops/host_loan.h"

namespace fasthorovod::ops {

/// Which operation.
struct HostKey {
  std::uint32_t group = 0;  // as on the wire
  std::uint64_t sequence = 0;
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

/// How far a rank is with the piece in a slot: each is 1 + the last piece of which it is true.
struct HostSlot {
  std::atomic<std::uint32_t> in{0};      // its stripes for the others lie in its area
  std::atomic<std::uint32_t> summed{0};  // it has reduced its own stripes, and read all it needs
  std::atomic<std::uint32_t> out{0};     // its own stripes lie in its area with their final values
  std::atomic<std::uint32_t> copied{0};  // it has taken the final values of all others
};

struct alignas(64) HostEntry {
  static constexpr std::size_t kDescription = 200;  // bytes of it that fit
  enum Phase : std::uint64_t { kEmpty = 0, kRunning = 1, kFailed = 2 };

  std::array<HostSlot, kHostSlots> slots;

  std::atomic<std::uint64_t> state{0};  // how often the entry was published, times 4, and a Phase
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint32_t> group{0};
  std::atomic<std::uint32_t> fingerprint{0};
  std::atomic<std::uint64_t> area{0};   // offset in the arena
  std::atomic<std::uint64_t> input{0};  // as in HostLoan
  std::atomic<std::uint64_t> output{0};
  std::atomic<std::uint32_t> writes{0};  // 1 while this rank writes to outputs that mates lend
  std::array<std::atomic<std::uint64_t>, kDescription / 8> description{};  // zeros fill it up

  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

/// What a rank says of an operation when it begins.
struct HostNotice {
  HostKey key;
  std::uint32_t fingerprint = 0;
  std::uint64_t area = 0;   // offset in the arena
  std::string description;  // what this rank believes the operation to be; may be cut
  HostLoan loan{};
};

/// A mate's entry, as it was found.
struct HostSighting {
  const HostEntry* entry = nullptr;
  std::uint64_t publication = 0;  // of the entry; another one is another operation
  std::uint32_t fingerprint = 0;
  std::uint64_t area = 0;
  HostLoan loan{};
  bool failed = false;  // already when it was found

  enum class Now { kRunning, kFailed, kGone };
  [[nodiscard]] Now now() const;
  /// Whether that rank is writing to outputs lent for the operation.
  [[nodiscard]] bool writes() const;
  [[nodiscard]] std::string description() const;
};

class HostTable final {
 public:
  static constexpr std::size_t kEntries = 256;

  /// The beginning of an arena that the table takes, in bytes: whole pages.
  static std::size_t bytes();

  /// The table at the beginning of `arena`, which was created all zero.
  explicit HostTable(std::span<std::byte> arena);

  /// Null when all entries are taken.
  HostEntry* publish(const HostNotice& notice);
  /// Publishes another operation in an entry of which no mate needs anything any more. The rest of
  /// the entry stays: area, description and loan.
  void publish_next(HostEntry& entry, const HostKey& key, std::uint32_t fingerprint);
  /// Says that this rank touches nobody's memory for that operation any more, and that mates are to
  /// begin no more writing to its own: see host_loan.h.
  static void fail(HostEntry& entry);
  /// Takes an entry back.
  void retire(HostEntry& entry);

  /// How often entries were published so far: while it stays the same, find() finds nothing new.
  [[nodiscard]] std::uint64_t publications() const;
  [[nodiscard]] std::optional<HostSighting> find(const HostKey& key) const;
  /// The operation, if it is in that entry.
  [[nodiscard]] static std::optional<HostSighting> find_in(const HostEntry& entry,
                                                           const HostKey& key);

  [[nodiscard]] HostBell& bell() const;

 private:
  struct Memory;
  void show(HostEntry& entry, const HostKey& key, std::uint32_t fingerprint);

  Memory* memory_;
};

}  // namespace fasthorovod::ops
