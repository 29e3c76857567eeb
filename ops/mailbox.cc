#include "ops/mailbox.h"

#include <algorithm>
#include <utility>

#include "core/wire.h"

namespace fasthorovod::ops {
namespace {

constexpr std::size_t kMaxTitle = 256;

bool fits(const MessageJob& receive, const Announcement& announcement) {
  return receive.peer < 0 || receive.peer == announcement.sender;
}

}  // namespace

std::vector<std::byte> encode(const Announcement& announcement) {
  core::WireWriter writer;
  writer.varint(announcement.tag);
  writer.varint(announcement.ordinal);
  writer.varint(announcement.bytes);
  writer.text(std::string_view(announcement.title).substr(0, kMaxTitle));
  return std::move(writer).take();
}

bool decode(std::span<const std::byte> bytes, Announcement& announcement) {
  core::WireReader reader(bytes);
  announcement.tag = reader.varint32();
  announcement.ordinal = reader.varint();
  announcement.bytes = reader.varint();
  announcement.title = reader.text();
  return reader.ok() && reader.at_end();
}

std::optional<Announcement> Mailbox::post(const MessagePtr& receive) {
  std::deque<Announcement>& candidates = announcements_[receive->message.tag];
  const auto found = std::ranges::find_if(
      candidates, [&](const Announcement& candidate) { return fits(*receive, candidate); });
  if (found == candidates.end()) {
    receives_[receive->message.tag].push_back(receive);
    return std::nullopt;
  }
  Announcement taken = std::move(*found);
  candidates.erase(found);
  --waiting_;
  return taken;
}

std::vector<Mailbox::Match> Mailbox::announce(Announcement announcement) {
  std::vector<Match> matches;
  Sender& sender = senders_[announcement.sender];
  const std::uint64_t ordinal = announcement.ordinal;
  sender.overtaken.emplace(ordinal, std::move(announcement));
  ++waiting_;
  while (!sender.overtaken.empty() && sender.overtaken.begin()->first == sender.heard + 1) {
    ++sender.heard;
    place(std::move(sender.overtaken.begin()->second), matches);
    sender.overtaken.erase(sender.overtaken.begin());
  }
  return matches;
}

void Mailbox::place(Announcement announcement, std::vector<Match>& matches) {
  if (const auto refused = refused_.extract(announcement.sequence); !refused.empty()) {
    announcement.refused = std::move(refused.mapped());
  }
  std::deque<MessagePtr>& candidates = receives_[announcement.tag];
  const auto found = std::ranges::find_if(
      candidates, [&](const MessagePtr& candidate) { return fits(*candidate, announcement); });
  if (found == candidates.end()) {
    announcements_[announcement.tag].push_back(std::move(announcement));
    return;
  }
  matches.push_back({std::move(*found), std::move(announcement)});
  candidates.erase(found);
  --waiting_;
}

void Mailbox::refuse(std::uint64_t sequence, const core::Error& error) {
  for (auto& [tag, waiting] : announcements_) {
    const auto found = std::ranges::find(waiting, sequence, &Announcement::sequence);
    if (found == waiting.end()) continue;
    found->refused = error;
    return;
  }
  refused_.emplace(sequence, error);
}

bool Mailbox::withdraw(const MessagePtr& receive) {
  const auto waiting = receives_.find(receive->message.tag);
  return waiting != receives_.end() && std::erase(waiting->second, receive) > 0;
}

std::vector<MessagePtr> Mailbox::take_receives_from(int sender) {
  std::vector<MessagePtr> taken;
  for (auto& [tag, waiting] : receives_) {
    std::erase_if(waiting, [&](const MessagePtr& receive) {
      if (receive->peer != sender) return false;
      taken.push_back(receive);
      return true;
    });
  }
  return taken;
}

std::vector<MessagePtr> Mailbox::take_all() {
  std::vector<MessagePtr> taken;
  for (auto& [tag, waiting] : std::exchange(receives_, {})) {
    taken.insert(taken.end(), waiting.begin(), waiting.end());
  }
  for (auto& [tag, waiting] : std::exchange(announcements_, {})) {
    for (Announcement& announcement : waiting) {
      if (announcement.local != nullptr) taken.push_back(std::move(announcement.local));
    }
  }
  waiting_ = 0;
  return taken;
}

}  // namespace fasthorovod::ops
