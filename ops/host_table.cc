#include "ops/host_table.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace fasthorovod::ops {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kPhases = 4;

std::uint64_t phase_of(std::uint64_t state) { return state % kPhases; }
std::uint64_t publication_of(std::uint64_t state) { return state / kPhases; }

// Never 0, which stands for an empty entry. Two keys may share one: the entry itself decides.
std::uint64_t tag_of(const HostKey& key) {
  return ((key.sequence << 32 | key.sequence >> 32) ^ key.group) | std::uint64_t{1} << 63;
}

}  // namespace

// In shared memory, at the beginning of an arena. All zero is an empty table.
struct HostTable::Memory {
  HostBell bell;
  std::atomic<std::uint64_t> publications;
  std::array<std::atomic<std::uint64_t>, kEntries> tags;  // of the keys, so that a search is short
  std::array<HostEntry, kEntries> entries;
};

HostSighting::Now HostSighting::now() const {
  const std::uint64_t state = entry->state.load();
  if (publication_of(state) != publication || phase_of(state) == HostEntry::kEmpty) {
    return Now::kGone;
  }
  return phase_of(state) == HostEntry::kFailed ? Now::kFailed : Now::kRunning;
}

std::string HostSighting::description() const {
  std::array<std::uint64_t, HostEntry::kDescription / 8> words{};
  std::ranges::transform(entry->description, words.begin(),
                         [](const auto& word) { return word.load(); });
  std::string text(HostEntry::kDescription, '\0');
  std::memcpy(text.data(), words.data(), text.size());
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::size_t HostTable::bytes() { return (sizeof(Memory) + kPage - 1) / kPage * kPage; }

HostTable::HostTable(std::span<std::byte> arena)
    : memory_(reinterpret_cast<Memory*>(arena.data())) {
  assert(arena.size() >= sizeof(Memory));
}

HostEntry* HostTable::publish(const HostNotice& notice) {
  const auto is_free = [](const HostEntry& entry) {
    return phase_of(entry.state.load()) == HostEntry::kEmpty;
  };
  const auto entry = std::ranges::find_if(memory_->entries, is_free);
  if (entry == memory_->entries.end()) return nullptr;
  // Not before the state says that the entry is empty.
  constexpr auto kRelease = std::memory_order_release;
  for (HostSlot& slot : entry->slots) {
    slot.in.store(0, kRelease);
    slot.summed.store(0, kRelease);
    slot.out.store(0, kRelease);
    slot.copied.store(0, kRelease);
  }
  entry->sequence.store(notice.key.sequence, kRelease);
  entry->group.store(notice.key.group, kRelease);
  entry->fingerprint.store(notice.fingerprint, kRelease);
  entry->area.store(notice.area, kRelease);
  entry->input.store(notice.loan.input, kRelease);
  entry->output.store(notice.loan.output, kRelease);
  std::array<std::uint64_t, HostEntry::kDescription / 8> words{};
  std::memcpy(words.data(), notice.description.data(),
              std::min(HostEntry::kDescription, notice.description.size()));
  for (std::size_t i = 0; i < words.size(); ++i) entry->description[i].store(words[i], kRelease);
  const std::uint64_t publication = publication_of(entry->state.load()) + 1;
  entry->state.store(publication * kPhases + HostEntry::kRunning);
  memory_->tags[static_cast<std::size_t>(entry - memory_->entries.begin())].store(
      tag_of(notice.key));
  memory_->publications.fetch_add(1);
  return &*entry;
}

void HostTable::fail(HostEntry& entry) {
  entry.state.store(publication_of(entry.state.load()) * kPhases + HostEntry::kFailed);
}

void HostTable::retire(HostEntry& entry) {
  // The state first: who finds it unchanged after reading the rest has read one operation's.
  entry.state.store(publication_of(entry.state.load()) * kPhases + HostEntry::kEmpty);
  memory_->tags[static_cast<std::size_t>(&entry - memory_->entries.data())].store(0);
}

std::uint64_t HostTable::publications() const { return memory_->publications.load(); }

std::optional<HostSighting> HostTable::find(const HostKey& key) const {
  const std::uint64_t tag = tag_of(key);
  for (std::size_t i = 0; i < kEntries; ++i) {
    if (memory_->tags[i].load() != tag) continue;
    const HostEntry& entry = memory_->entries[i];
    const std::uint64_t state = entry.state.load();
    HostSighting sighting{&entry,
                          publication_of(state),
                          entry.fingerprint.load(),
                          entry.area.load(),
                          {entry.input.load(), entry.output.load()}};
    const HostKey found{entry.group.load(), entry.sequence.load()};
    // Still there after its fields were read, so they were one operation's.
    const HostSighting::Now now = sighting.now();
    if (now == HostSighting::Now::kGone || found != key) continue;
    sighting.failed = now == HostSighting::Now::kFailed;
    return sighting;
  }
  return std::nullopt;
}

HostBell& HostTable::bell() const { return memory_->bell; }

}  // namespace fasthorovod::ops
