#include "transport/control_links.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::transport {

void ControlLinks::add(int rank, FileDescriptor socket, const ChannelKeys& keys) {
  Link& link = links_[rank];
  link.channel = std::make_unique<Channel>(context_, std::move(socket), keys);
  link.channel->start({.on_message = [this, rank](auto message) { take(rank, message); },
                       .on_end = [this, rank](core::Error error) { end(rank, std::move(error)); }});
}

void ControlLinks::drop(int rank) { links_.erase(rank); }

void ControlLinks::close_all() { links_.clear(); }

core::Status ControlLinks::send(int rank, std::span<const std::byte> message) {
  const auto link = links_.find(rank);
  return link == links_.end() ? core::Status() : link->second.channel->send(message);
}

void ControlLinks::expect_close(int rank) {
  if (const auto link = links_.find(rank); link != links_.end()) link->second.expects_close = true;
}

void ControlLinks::attach(LinkHandlers handlers) {
  handlers_ = std::make_shared<LinkHandlers>(std::move(handlers));
  for (Event& event : std::exchange(kept_, {})) {
    if (event.end) {
      end(event.rank, std::move(*event.end));
    } else {
      take(event.rank, event.message);
    }
  }
}

bool ControlLinks::drained() const {
  return std::ranges::all_of(links_,
                             [](const auto& link) { return link.second.channel->drained(); });
}

void ControlLinks::drain(core::TimePoint deadline) {
  for (auto& [rank, link] : links_) link.channel->drain(deadline);
}

void ControlLinks::take(int rank, std::span<const std::byte> message) {
  if (const auto handlers = handlers_) {
    handlers->on_message(rank, message);
  } else {
    kept_.push_back({rank, {message.begin(), message.end()}, std::nullopt});
  }
}

void ControlLinks::end(int rank, core::Error error) {
  const auto handlers = handlers_;
  if (!handlers) {
    kept_.push_back({rank, {}, std::move(error)});
    return;
  }
  const auto link = links_.find(rank);
  const bool expected = link != links_.end() && link->second.expects_close;
  if (link != links_.end()) links_.erase(link);
  if (!expected) handlers->on_end(rank, std::move(error));
}

}  // namespace fasthorovod::transport
