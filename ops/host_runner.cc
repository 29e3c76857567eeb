#include "ops/host_runner.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/host_stripes.h"
#include "transport/private_pages.h"

namespace fasthorovod::ops {

namespace {

// Of two ranks, either copies out half of its output, to lines that the other one has just read and
// that are still in caches. More ranks find fewer of them there.
constexpr std::size_t kLeastRanksPastCaches = 3;

}  // namespace

HostRunner::HostRunner(HostOperation operation, HostTable& table, std::uint64_t area_offset,
                       const std::vector<HostSeat>& seats)
    : operation_(std::move(operation)),
      table_(table),
      loan_(loan_of(operation_, seats[static_cast<std::size_t>(operation_.layout.place)].arena)),
      past_caches_(!operation_.layout.crosses() && seats.size() >= kLeastRanksPastCaches &&
                   operation_.output_leaves_caches()),
      one_meeting_(operation_.layout.is_small() && operation_.layout.pieces == 1),
      entry_(table.publish({{operation_.group, operation_.sequence},
                            operation_.fingerprint,
                            area_offset,
                            operation_.description,
                            loan_})),
      in_(operation_.layout,
          loan_.lends_input() ? std::vector<int>{} : stripes_to_copy_in(operation_.layout)),
      sum_(operation_.layout, stripes_to_reduce(operation_.layout)),
      out_(operation_.layout, stripes_to_copy_out(operation_.layout)),
      transferred_(operation_.layout.pieces),
      sources_(seats.size()) {
  assert(entry_ != nullptr && "an area comes with an entry");
  mates_.reserve(seats.size());
  lenders_.reserve(seats.size());
  for (const HostSeat& seat : seats) mates_.emplace_back(seat);
  for (std::size_t place = 0; place < mates_.size(); ++place) {
    if (static_cast<int>(place) != operation_.layout.place) others_.push_back(&mates_[place]);
  }
}

void HostRunner::begin_next(const HostCall& call) {
  operation_.sequence = call.sequence;
  operation_.fingerprint = call.fingerprint;
  operation_.input = call.input;
  operation_.output = call.output;
  operation_.done = nullptr;
  table_.publish_next(*entry_, key(), call.fingerprint);
  for (HostMate* mate : others_) mate->begin_next();
  in_.restart();
  sum_.restart();
  out_.restart();
  final_pieces_ = 0;
  introduced_ = all_here_ = all_lend_ = ended_ = false;
}

void HostRunner::look(HostNews& news) {
  // A failure is published before the mates are looked at: see releasable() and host_loan.h.
  if (failure_ && !ended_) HostTable::fail(*entry_);
  if (!introduced_) {
    introduced_ = true;
    // Else they hear of it when it has copied in: before that nobody can do anything with it.
    if (operation_.layout.pieces == 0) ring(news);
  }
  look_at_mates(news);
  if (failure_ && !ended_ && !is_written()) end(*failure_, news);
  while (settle(news)) {
  }
}

void HostRunner::give_up(const core::Error& error, HostNews& news) {
  fail(error);
  look(news);
  if (ended_) return;
  take_output_back();
  end(*failure_, news);
}

bool HostRunner::is_written() const {
  return loan_.lends_output() &&
         std::ranges::any_of(others_, [](const HostMate* mate) { return mate->writes(); });
}

void HostRunner::take_output_back() {
  const auto [offset, bytes] = loan_.pages(operation_.layout.bytes);
  const core::Status taken = transport::make_private(operation_.output.subspan(offset, bytes));
  if (!taken)
    failure_->message += "; a rank may still write to the result: " + taken.error().message;
}

void HostRunner::look_at_mates(HostNews& news) {
  bool all_here = true;
  const bool goes_on = !ended_ && !failure_;
  for (HostMate* mate : others_) {
    const HostMate::State before = mate->state();
    const HostMate::State now = mate->look(key(), operation_.fingerprint, operation_.layout);
    if (now == HostMate::State::kOther && now != before && goes_on) {
      news.disagreements.push_back({operation_.group, operation_.sequence, mate->rank(),
                                    operation_.description, mate->description()});
    }
    if (now != HostMate::State::kHere && now != HostMate::State::kGone) all_here = false;
  }
  if (!goes_on || all_here_ || !all_here) return;
  all_here_ = true;
  all_lend_ = loan_.lends_all() && std::ranges::all_of(others_, [](const HostMate* mate) {
                return mate->input() != nullptr && mate->output() != nullptr;
              });
  if (operation_.layout.crosses()) {
    news.gates.push_back({operation_.group, operation_.sequence, 0});
  }
}

void HostRunner::end(core::Status status, HostNews& news) {
  ended_ = true;
  outcome_ = status;
  ring(news);
  if (operation_.done) news.ends.push_back({std::move(operation_.done), std::move(status)});
}

// Publishes one thing that has become true; false when there is none.
bool HostRunner::settle(HostNews& news) {
  if (ended_ || failure_) return false;
  if (!in_.over() && in_.piece_is_through() && may_copy_in()) {
    publish(&HostSlot::in, in_.piece(), news);
    in_.go_on();
    return true;
  }
  if (!sum_.over() && sum_.piece_is_through() && may_reduce()) {
    publish(&HostSlot::summed, sum_.piece(), news);
    sum_.go_on();
    if (operation_.layout.crosses()) {
      news.gates.push_back({operation_.group, operation_.sequence, sum_.piece()});
    }
    return true;
  }
  if (final_pieces_ < sum_.piece() && transferred(final_pieces_)) {
    if (!one_meeting_) publish(&HostSlot::out, final_pieces_, news);
    ++final_pieces_;
    return true;
  }
  if (!out_.over() && out_.piece_is_through()) {
    if (!one_meeting_) publish(&HostSlot::copied, out_.piece(), news);
    out_.go_on();
    return true;
  }
  if (may_end()) {
    if (operation_.layout.pieces == 0) publish_empty();
    end({}, news);
  }
  return false;
}

bool HostRunner::may_end() const {
  const std::uint32_t pieces = operation_.layout.pieces;
  if (!all_here_ || !out_.over() || final_pieces_ != pieces) return false;
  return !loan_.lends_output() || pieces == 0 || all_reached(&HostSlot::copied, pieces - 1);
}

void HostRunner::publish(Counter counter, std::uint32_t piece, HostNews& news) {
  (entry_->slots[piece % operation_.layout.slots].*counter).store(piece + 1);
  ring(news);
}

// Without a piece there is nothing to count, but the mates must know that they were seen.
void HostRunner::publish_empty() {
  entry_->slots[0].summed.store(1);
  entry_->slots[0].copied.store(1);
}

void HostRunner::ring(HostNews& news) const {
  for (const HostMate* mate : others_) {
    if (std::ranges::find(news.bells, &mate->bell()) == news.bells.end()) {
      news.bells.push_back(&mate->bell());
    }
  }
}

std::optional<HostStep> HostRunner::next() const {
  if (ended_ || failure_ || spoiled_) return std::nullopt;
  const auto always = [](int) { return true; };
  if (!sum_.over() && may_reduce()) {
    if (const auto block = sum_.next(always)) return HostStep{HostStep::Kind::kReduce, *block};
  }
  if (!out_.over()) {
    const auto block = out_.next([this](int stripe) { return is_out(stripe); });
    if (block) return HostStep{HostStep::Kind::kCopyOut, *block};
  }
  if (!in_.over() && may_copy_in()) {
    if (const auto block = in_.next(always)) return HostStep{HostStep::Kind::kCopyIn, *block};
  }
  return std::nullopt;
}

void HostRunner::ran(const HostStep& step, HostNews& news) {
  if (!used_in_time(step)) {
    spoiled_ = true;
    return ring(news);  // the lender may wait until nobody writes
  }
  switch (step.kind) {
    case HostStep::Kind::kCopyIn:
      in_.took(step.block);
      break;
    case HostStep::Kind::kReduce:
      sum_.took(step.block);
      break;
    case HostStep::Kind::kCopyOut:
      out_.took(step.block);
      break;
  }
  while (settle(news)) {
  }
}

void HostRunner::piece_done(std::uint32_t piece) {
  if (piece < transferred_.size()) transferred_[piece] = true;
}

void HostRunner::fail(const core::Error& error) {
  if (!failure_) failure_ = error;
}

// A slot is free when everybody is through with the piece it held; where all lend all, nothing lies
// in slots.
bool HostRunner::may_copy_in() const {
  const std::uint32_t slots = operation_.layout.slots;
  if (in_.piece() < slots || all_lend_) return true;
  const std::uint32_t held = in_.piece() - slots;
  return sum_.piece() > held && out_.piece() > held && all_reached(&HostSlot::summed, held) &&
         all_reached(&HostSlot::copied, held);
}

bool HostRunner::may_reduce() const {
  return all_here_ && in_.piece() > sum_.piece() && all_reached(&HostSlot::in, sum_.piece());
}

bool HostRunner::is_out(int stripe) const {
  const int place = place_of(stripe);
  if (place == operation_.layout.place) return final_pieces_ > out_.piece();
  return mates_[static_cast<std::size_t>(place)].reached(&HostSlot::out, out_.piece(),
                                                         operation_.layout.slots);
}

// A piece of which this rank owns nothing has no transfers.
bool HostRunner::transferred(std::uint32_t piece) const {
  if (!operation_.layout.crosses() || transferred_[piece]) return true;
  return std::ranges::all_of(stripes_to_reduce(operation_.layout), [&](int stripe) {
    return operation_.layout.stripe(piece, stripe).bytes == 0;
  });
}

bool HostRunner::all_reached(Counter counter, std::uint32_t piece) const {
  return std::ranges::all_of(others_, [&](const HostMate* mate) {
    return mate->reached(counter, piece, operation_.layout.slots);
  });
}

// A mate that begins after this rank's failure was published finds it failed, or not at all; one
// that began before was seen by the look that followed.
bool HostRunner::releasable() const {
  if (!ended_) return false;
  if (operation_.layout.crosses() && !transfers_ended_) {
    for (std::uint32_t piece = 0; piece < operation_.layout.pieces; ++piece) {
      if (!transferred(piece)) return false;
    }
  }
  return std::ranges::all_of(others_, [this](const HostMate* mate) { return is_through(*mate); });
}

bool HostRunner::is_through(const HostMate& mate) const {
  switch (mate.state()) {
    case HostMate::State::kAbsent:
    case HostMate::State::kFailed:
    case HostMate::State::kGone:
      return true;
    case HostMate::State::kOther:
      return false;
    case HostMate::State::kHere:
      break;
  }
  const std::uint32_t last = std::max(operation_.layout.pieces, 1U) - 1;
  const std::uint32_t slots = std::max(operation_.layout.slots, 1U);
  return mate.reached(&HostSlot::summed, last, slots) &&
         (one_meeting_ || mate.reached(&HostSlot::copied, last, slots));
}

// Who has not begun holds up all others, and who has not copied in holds up their sums.
std::vector<int> HostRunner::awaited() const {
  if (ended_) return {};
  if (failure_) return ranks_of([](const HostMate& mate) { return mate.writes(); });
  std::vector<int> ranks = ranks_of([](const HostMate& mate) {
    return mate.state() != HostMate::State::kHere && mate.state() != HostMate::State::kGone;
  });
  if (ranks.empty() && !sum_.over()) {
    ranks = ranks_of([this](const HostMate& mate) {
      return !mate.reached(&HostSlot::in, sum_.piece(), operation_.layout.slots);
    });
  }
  return ranks.empty() ? ranks_of([this](const HostMate& mate) { return owes(mate); }) : ranks;
}

std::vector<int> HostRunner::absent() const {
  if (ended_) return {};
  return ranks_of([](const HostMate& mate) { return mate.state() == HostMate::State::kAbsent; });
}

template <typename Predicate>
std::vector<int> HostRunner::ranks_of(Predicate predicate) const {
  std::vector<int> ranks;
  for (const HostMate* mate : others_) {
    if (predicate(*mate)) ranks.push_back(mate->rank());
  }
  return ranks;
}

// Values of its stripes, or that it is through with a slot.
bool HostRunner::owes(const HostMate& mate) const {
  const std::uint32_t slots = operation_.layout.slots;
  const auto is_its = [&](int stripe) {
    return &mates_[static_cast<std::size_t>(place_of(stripe))] == &mate;
  };
  if (!out_.over() && out_.next(is_its) && !mate.reached(&HostSlot::out, out_.piece(), slots)) {
    return true;
  }
  if (out_.over() && loan_.lends_output() && out_.piece() > 0) {
    return !mate.reached(&HostSlot::copied, out_.piece() - 1, slots);
  }
  if (may_copy_in() || in_.over()) return false;
  const std::uint32_t held = in_.piece() - slots;
  return !mate.reached(&HostSlot::summed, held, slots) ||
         !mate.reached(&HostSlot::copied, held, slots);
}

void HostRunner::retire() { table_.retire(*entry_); }

int HostRunner::place_of(int stripe) const {
  const auto host = static_cast<std::size_t>(operation_.layout.host);
  return stripe % static_cast<int>(operation_.layout.hosts[host].size());
}

// For what this rank has reduced, and not the lanes.
bool HostRunner::mates_read_area() const {
  return !operation_.layout.crosses() && !operation_.layout.is_small() && !loan_.lends_output();
}

const HostMate& HostRunner::mate_of(int stripe) const {
  return mates_[static_cast<std::size_t>(place_of(stripe))];
}

}  // namespace fasthorovod::ops
