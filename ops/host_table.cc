#include "ops/host_table.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace fasthorovod::ops {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kPhases = 4;
constexpr auto kRelease = std::memory_order_release;

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
  std::atomic<std::uint64_t> used;  // the first so many entries were ever used
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

bool HostSighting::writes() const { return entry->writes.load() != 0 && now() == Now::kRunning; }

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
  const auto used = static_cast<std::uint64_t>(entry - memory_->entries.begin()) + 1;
  if (used > memory_->used.load()) memory_->used.store(used);
  entry->area.store(notice.area, kRelease);
  entry->input.store(notice.loan.input, kRelease);
  entry->output.store(notice.loan.output, kRelease);
  std::array<std::uint64_t, HostEntry::kDescription / 8> words{};
  std::memcpy(words.data(), notice.description.data(),
              std::min(HostEntry::kDescription, notice.description.size()));
  for (std::size_t i = 0; i < words.size(); ++i) entry->description[i].store(words[i], kRelease);
  show(*entry, notice.key, notice.fingerprint);
  return &*entry;
}

void HostTable::publish_next(HostEntry& entry, const HostKey& key, std::uint32_t fingerprint) {
  // What follows is stored after it: who sees any of that finds the entry empty.
  entry.state.store(publication_of(entry.state.load()) * kPhases + HostEntry::kEmpty, kRelease);
  show(entry, key, fingerprint);
}

// The rest of the entry stands; its state says that it is empty.
void HostTable::show(HostEntry& entry, const HostKey& key, std::uint32_t fingerprint) {
  for (HostSlot& slot : entry.slots) {
    slot.in.store(0, kRelease);
    slot.summed.store(0, kRelease);
    slot.out.store(0, kRelease);
    slot.copied.store(0, kRelease);
  }
  entry.writes.store(0, kRelease);
  entry.sequence.store(key.sequence, kRelease);
  entry.group.store(key.group, kRelease);
  entry.fingerprint.store(fingerprint, kRelease);
  const std::uint64_t publication = publication_of(entry.state.load()) + 1;
  entry.state.store(publication * kPhases + HostEntry::kRunning, kRelease);
  memory_->tags[static_cast<std::size_t>(&entry - memory_->entries.data())].store(tag_of(key),
                                                                                  kRelease);
  // Who is about to sleep looks at this: a store that the bell's promise rests on.
  memory_->publications.fetch_add(1);
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
  const std::size_t used = std::min<std::uint64_t>(memory_->used.load(), kEntries);
  for (std::size_t i = 0; i < used; ++i) {
    if (memory_->tags[i].load() != tag) continue;
    if (const auto sighting = find_in(memory_->entries[i], key)) return sighting;
  }
  return std::nullopt;
}

std::optional<HostSighting> HostTable::find_in(const HostEntry& entry, const HostKey& key) {
  const std::uint64_t state = entry.state.load();
  const HostKey found{entry.group.load(), entry.sequence.load()};
  if (found != key) return std::nullopt;
  HostSighting sighting{&entry,
                        publication_of(state),
                        entry.fingerprint.load(),
                        entry.area.load(),
                        {entry.input.load(), entry.output.load()}};
  // Still there after its fields were read, so they were one operation's.
  const HostSighting::Now now = sighting.now();
  if (now == HostSighting::Now::kGone) return std::nullopt;
  sighting.failed = now == HostSighting::Now::kFailed;
  return sighting;
}

HostBell& HostTable::bell() const { return memory_->bell; }

}  // namespace fasthorovod::ops
