#include "transport/settling.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fasthorovod::transport {

using core::Error;
using core::ErrorCode;

Settling::Settling(ControlLinks& links, const core::World& world)
    : links_(links), world_(world), ready_(static_cast<std::size_t>(world.size), false) {
  links_.attach({.on_message = [this](int rank, auto message) { take(rank, message); },
                 .on_end = [this](int rank, Error error) { lose(rank, std::move(error)); }});
}

Settling::~Settling() { links_.detach(); }

void Settling::ready() {
  if (over_) return;
  if (world_.rank == 0) {
    count(0);
  } else {
    tell(Ready{});
  }
}

void Settling::fail(Error error) {
  if (over_) return;
  if (error.culprit < 0) error.culprit = world_.rank;
  error = std::move(error).with_context(world_.describe(world_.rank));
  tell(StartFailed{error});
  conclude(std::move(error));
}

void Settling::expire() {
  if (world_.rank != 0) {
    return fail({ErrorCode::kTimedOut,
                 "rank 0 did not say before the time limit that all ranks "
                 "are ready",
                 0});
  }
  Missing missing;
  for (int rank = 0; rank < world_.size; ++rank) {
    if (!ready_[static_cast<std::size_t>(rank)]) missing.ranks.push_back(rank);
  }
  missing.count = static_cast<int>(missing.ranks.size());
  fail({ErrorCode::kTimedOut,
        fmt::format("{} did not say before the time limit whether they could start",
                    describe(missing)),
        missing.ranks.front()});
}

void Settling::take(int rank, std::span<const std::byte> bytes) {
  auto message = decode_rendezvous(bytes);
  if (message && std::holds_alternative<Ready>(*message) && world_.rank == 0) return count(rank);
  if (message && std::holds_alternative<Begin>(*message) && world_.rank != 0) return conclude({});
  auto* failed = message ? std::get_if<StartFailed>(&*message) : nullptr;
  Error error = failed != nullptr
                    ? std::move(failed->error)
                    : Error{ErrorCode::kProtocol,
                            world_.describe(rank) + " sent what has no place in a start", rank};
  if (world_.rank == 0) tell(StartFailed{error});
  conclude(std::move(error));
}

void Settling::lose(int rank, Error error) {
  error.culprit = rank;
  error = std::move(error).with_context(world_.describe(rank) + " left during the start");
  if (world_.rank == 0) tell(StartFailed{error});
  conclude(std::move(error));
}

void Settling::count(int rank) {
  ready_[static_cast<std::size_t>(rank)] = true;
  if (std::ranges::find(ready_, false) != ready_.end()) return;
  tell(Begin{});
  conclude({});
}

void Settling::conclude(core::Status outcome) {
  outcome_ = std::move(outcome);
  over_ = true;
  links_.detach();  // whatever comes next belongs to the engine
}

void Settling::tell(const RendezvousMessage& message) {
  const auto bytes = encode(message);
  if (world_.rank != 0) return static_cast<void>(links_.send(0, bytes));
  for (int rank = 1; rank < world_.size; ++rank) (void)links_.send(rank, bytes);
}

}  // namespace fasthorovod::transport
