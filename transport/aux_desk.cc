#include "transport/aux_desk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

// As a lane hands over what it reads.
constexpr std::size_t kPieceBytes = 128 << 10;
// An auxiliary has at most so many flows.
constexpr std::size_t kMostArrivals = 1 << 16;

Error nonsense(const char* what) { return {ErrorCode::kProtocol, what}; }

std::span<std::byte> half_of(std::span<std::byte> staging, bool second) {
  const std::size_t half = staging.size() / 2 / Arena::kPage * Arena::kPage;
  return staging.subspan(second ? half : 0, half);
}

}  // namespace

AuxDesk::AuxDesk(const AuxPlace& place, FileDescriptor bell, ChunkWork& work,
                 std::shared_ptr<RateBoard> rates)
    : arena_(place.arena),
      bell_(std::move(bell)),
      work_(work),
      requests_(place.mailbox.requests),
      answers_(place.mailbox.answers),
      leaving_(arena_, half_of(place.staging, false)),
      coming_(arena_, half_of(place.staging, true)),
      largest_(half_of(place.staging, false).size()),
      seats_(place.mailbox.flows, rates ? std::move(rates) : std::make_shared<RateBoard>(),
             [this] { ring(); }) {}

void AuxDesk::ring() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof one);
}

void AuxDesk::flush() {
  if (std::exchange(unheard_, false)) ring();
}

void AuxDesk::post(const AuxAnswer& answer) { unheard_ = answers_.write(answer) || unheard_; }

core::Result<bool> AuxDesk::serve() {
  while (true) {
    auto request = requests_.read();
    if (!request) return std::move(request).error();
    if (!*request) break;
    ++heard_;
    if (core::Status status = hear(**request); !status) return std::move(status).error();
  }
  if (requests_.take_starved()) ring();
  unheard_ = answers_.flush() || unheard_;
  admit_arrivals();
  auto again = grant_wants();
  flush();
  return again;
}

core::Status AuxDesk::hear(const AuxRequest& request) {
  if (!seats_.knows(request.flow)) return nonsense("it spoke of a flow that it does not have");
  switch (request.kind) {
    case AuxRequest::Kind::kWant:
      want(request.peer, request.flow);
      return {};
    case AuxRequest::Kind::kSent:
      return sent(request.id);
    case AuxRequest::Kind::kArrive:
      return arrive(request);
    case AuxRequest::Kind::kReceived:
      return received(request.id);
    case AuxRequest::Kind::kFlowEnded:
      flow_ended(request);
      return {};
    case AuxRequest::Kind::kAlive:
      return {};
    case AuxRequest::Kind::kLook:
      seats_.look(request);
      return {};
    case AuxRequest::Kind::kGiveUp:
      give_up(request.flow);
      return {};
  }
  return nonsense("it asked for something unknown");
}

// It may ask twice, when it had to forget the first time.
void AuxDesk::want(int peer, std::uint32_t flow) {
  const auto found = std::ranges::find(wants_, peer, &Want::peer);
  if (found == wants_.end()) {
    wants_.push_back({.peer = peer, .flow = flow, .taken = {}});
  } else {
    found->flow = flow;
    found->told = false;
  }
}

// What it asked for is void; another flow asks. A chunk that was taken already may go on any.
void AuxDesk::give_up(std::uint32_t flow) {
  seats_.give_up(flow);
  std::erase_if(wants_, [flow](const Want& want) { return want.flow == flow && !want.taken; });
}

core::Status AuxDesk::sent(std::uint32_t id) {
  const auto found = outgoing_.find(id);
  if (found == outgoing_.end()) return nonsense("it sent a chunk that was not assigned to it");
  const ChunkTicket ticket = found->second.chunk.ticket;
  leaving_.release(found->second.staged);
  outgoing_.erase(found);
  work_.sent(ticket);
  return {};
}

core::Status AuxDesk::arrive(const AuxRequest& request) {
  const auto header = decode(request.header);
  if (!header) return header.error();
  const auto [entry, fresh] = incoming_.try_emplace(request.id);
  if (!fresh) return nonsense("it announced an arrival twice");
  if (incoming_.size() > kMostArrivals) return nonsense("it announced too many arrivals");
  entry->second.peer = request.peer;
  entry->second.header = *header;
  return {};  // admit_arrivals() comes next
}

core::Status AuxDesk::received(std::uint32_t id) {
  const auto found = incoming_.find(id);
  if (found == incoming_.end() || !found->second.answered) {
    return nonsense("it received a chunk that was not admitted");
  }
  const ChunkTicket ticket = found->second.arrival->ticket;
  deliver(found->second);
  coming_.release(found->second.staged);
  incoming_.erase(found);
  work_.received(ticket);
  return {};
}

// Brings a staged payload to its place.
void AuxDesk::deliver(const Incoming& incoming) {
  if (incoming.staged.empty()) return;
  const auto payload = incoming.staged.first(incoming.header.payload_bytes);
  if (incoming.arrival->kind == Arrival::Kind::kInto) {
    std::memcpy(incoming.arrival->into.data(), payload.data(), payload.size());
    return;
  }
  for (std::size_t done = 0; done < payload.size(); done += kPieceBytes) {
    work_.absorb(incoming.arrival->ticket, done,
                 payload.subspan(done, std::min(kPieceBytes, payload.size() - done)));
  }
}

void AuxDesk::flow_ended(const AuxRequest& request) {
  FlowEnd end{.clean = request.clean != 0, .error = request.error.unpack()};
  if (seats_.end(request.peer) && forget(request.peer)) end.clean = false;
  work_.flow_ended(request.peer, end);
}

// No flow is left for what was assigned or taken for this peer. True when there was something.
bool AuxDesk::forget(int peer) {
  bool lost = std::ranges::any_of(outgoing_,
                                  [peer](const auto& entry) { return entry.second.peer == peer; });
  const auto want = std::ranges::find(wants_, peer, &Want::peer);
  if (want != wants_.end()) {
    lost = lost || want->taken;
    wants_.erase(want);
  }
  post({.kind = AuxAnswer::Kind::kForget, .peer = peer});
  return lost;
}

core::Result<bool> AuxDesk::grant_wants() {
  bool ask_again = false;
  for (std::size_t i = 0; i < wants_.size();) {
    auto granted = grant(wants_[i]);
    if (!granted) return granted;
    if (*granted) {
      wants_.erase(wants_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    ask_again = ask_again || (!wants_[i].taken && work_.has_work(wants_[i].peer));
    ++i;
  }
  return ask_again;
}

// True when it was answered.
core::Result<bool> AuxDesk::grant(Want& want) {
  if (want.taken) return assign(want);
  if (work_.has_work(want.peer) && seats_.leaves_next(want.flow, work_)) {
    post({.kind = AuxAnswer::Kind::kLeave, .peer = want.peer, .flow = want.flow});
    return true;
  }
  if (take(want)) return assign(want);
  if (std::exchange(want.told, true)) return false;
  if (!work_.has_work(want.peer)) seats_.rest(want.flow);
  post({.kind = AuxAnswer::Kind::kNothing, .peer = want.peer});
  return false;
}

bool AuxDesk::take(Want& want) {
  want.taken = work_.take(want.peer);
  // What became possible together with the chunk is known before it: should sending fail, the
  // auxiliary gives up what it still believes to be parked.
  if (want.taken) admit_arrivals();
  return want.taken.has_value();
}

// False while no staging block is free.
core::Result<bool> AuxDesk::assign(Want& want) {
  const std::span<const std::byte> payload = want.taken->payload;
  if (payload.empty() || arena_.contains(payload)) {
    assign(want, {});
    return true;
  }
  if (payload.size() > largest_) {
    return Error{ErrorCode::kInternal,
                 fmt::format("a chunk of {} bytes fits no staging block", payload.size())};
  }
  const std::span<std::byte> staged = leaving_.allocate(payload.size());
  if (staged.empty()) return false;
  std::memcpy(staged.data(), payload.data(), payload.size());
  want.taken->payload = staged.first(payload.size());
  assign(want, staged);
  return true;
}

void AuxDesk::assign(Want& want, std::span<std::byte> staged) {
  const std::uint32_t id = ++last_chunk_;
  OutgoingChunk& chunk = *want.taken;
  chunk.header.payload_bytes = chunk.payload.size();
  post({.kind = AuxAnswer::Kind::kChunk,
        .peer = want.peer,
        .id = id,
        .flow = want.flow,
        .offset = chunk.payload.empty() ? 0 : arena_.offset_of(chunk.payload),
        .bytes = chunk.payload.size(),
        .header = encode(chunk.header)});
  outgoing_.emplace(id, Outgoing{want.peer, chunk, staged});
}

void AuxDesk::admit_arrivals() {
  for (auto entry = incoming_.begin(); entry != incoming_.end();) {
    const auto current = entry++;
    if (current->second.answered) continue;
    if (!current->second.arrival && !ask(*current)) {
      incoming_.erase(current);
      continue;
    }
    if (current->second.arrival) admit(*current);
  }
}

core::Status AuxDesk::fits_somewhere(const Arrival& arrival, std::uint64_t bytes) const {
  if (arrival.kind == Arrival::Kind::kPark) return {};
  if (arrival.kind == Arrival::Kind::kInto && arrival.into.size() != bytes) {
    return Error{ErrorCode::kInternal, fmt::format("a chunk of {} bytes was given a place of {}",
                                                   bytes, arrival.into.size())};
  }
  if (bytes <= largest_ || is_in_arena(arrival, bytes)) return {};
  return Error{ErrorCode::kInternal,
               fmt::format("a chunk of {} bytes fits no staging block", bytes)};
}

bool AuxDesk::is_in_arena(const Arrival& arrival, std::uint64_t bytes) const {
  return arrival.into.size() == bytes && arena_.contains(arrival.into);
}

// False when the arrival was refused. It may stay parked.
bool AuxDesk::ask(Arrivals::value_type& entry) {
  Incoming& incoming = entry.second;
  core::Result<Arrival> arrival = work_.arrive(incoming.peer, incoming.header);
  if (arrival) {
    if (core::Status fits = fits_somewhere(*arrival, incoming.header.payload_bytes); !fits) {
      arrival = std::move(fits).error();
    }
  }
  if (!arrival) {
    post({.kind = AuxAnswer::Kind::kRefused,
          .id = entry.first,
          .error = SharedError::from(arrival.error())});
    return false;
  }
  if (arrival->kind != Arrival::Kind::kPark) {
    incoming.arrival = *arrival;
  } else if (!std::exchange(incoming.told, true)) {
    post({.kind = AuxAnswer::Kind::kParked, .id = entry.first});
  }
  return true;
}

// Says where the payload goes; not yet when it needs a staging block and none is free.
void AuxDesk::admit(Arrivals::value_type& entry) {
  Incoming& incoming = entry.second;
  const bool adds = incoming.arrival->kind == Arrival::Kind::kAbsorb;
  const std::uint64_t bytes = incoming.header.payload_bytes;
  if (bytes == 0) {
    answer(entry, AuxAnswer::Kind::kInto, {});
  } else if (is_in_arena(*incoming.arrival, bytes)) {
    answer(entry, adds ? AuxAnswer::Kind::kAdd : AuxAnswer::Kind::kInto, incoming.arrival->into);
  } else if (incoming.staged = coming_.allocate(bytes); !incoming.staged.empty()) {
    answer(entry, AuxAnswer::Kind::kInto, incoming.staged.first(bytes));
  }
}

void AuxDesk::answer(Arrivals::value_type& entry, AuxAnswer::Kind kind,
                     std::span<const std::byte> place) {
  entry.second.answered = true;
  post({.kind = kind,
        .id = entry.first,
        .how = entry.second.arrival->how,
        .offset = place.empty() ? 0 : arena_.offset_of(place),
        .bytes = place.size()});
}

}  // namespace fasthorovod::transport
