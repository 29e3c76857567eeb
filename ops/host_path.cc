#include "ops/host_path.h"

#include <algorithm>
#include <utility>

#include "ops/algorithm_table.h"
#include "ops/algorithms/host_one_hop.h"
#include "ops/algorithms/host_ring.h"
#include "ops/group_hosts.h"

namespace fasthorovod::ops {

HostPath::HostPath(const core::World& world, std::vector<HostSeat> seats,
                   transport::ArenaHeap& heap, std::size_t largest_area, int flows,
                   const core::AllreducePlan& allreduces, ChunkBoard& board, Hooks hooks)
    : world_(world),
      largest_area_(largest_area),
      flows_(flows),
      allreduces_(allreduces),
      board_(board),
      team_(world, std::move(seats), heap, largest_area, team_hooks(std::move(hooks))) {}

HostHooks HostPath::team_hooks(Hooks hooks) {
  return {.open = [this](std::uint32_t group, std::uint64_t sequence,
                         std::uint32_t pieces) { board_.open_gates(group, sequence, pieces); },
          .disagreement = std::move(hooks.disagreement),
          .space = std::move(hooks.space)};
}

bool HostPath::serves(const core::World& world, const std::vector<int>& members) {
  std::vector<bool> seen(world.host_names.size());
  return std::ranges::any_of(members, [&](int rank) {
    const auto host = static_cast<std::size_t>(world.host_of_rank[static_cast<std::size_t>(rank)]);
    const bool again = seen[host];
    seen[host] = true;
    return again;
  });
}

bool HostPath::start(const Operation& operation, std::span<const std::byte> input, bool alone,
                     const std::function<void(int)>& meet) {
  HostOperation inside = inside_half(operation, input);
  const std::uint64_t scratch =
      takes_one_hop(inside.layout) ? host_one_hop_scratch(inside.layout) : 0;
  inside.area = team_.reserve(inside.layout.area_bytes() + scratch, operation.door(), alone);
  if (inside.area.empty()) return false;
  start_outside(operation, inside.layout, inside.area, meet);
  start_inside(std::move(inside));
  return true;
}

bool HostPath::is_one_host(const core::World& world, const std::vector<int>& members) {
  const auto host_of = [&](int rank) { return world.host_of_rank[static_cast<std::size_t>(rank)]; };
  return std::ranges::all_of(members,
                             [&](int rank) { return host_of(rank) == host_of(members.front()); });
}

// False: there is no shared memory for it.
bool HostPath::begin(const HostKind& kind, const HostCall& call,
                     const std::function<Operation()>& whole) {
  if (team_.begin_again(kind, call)) return true;
  HostOperation inside = inside_half(whole(), call.input);
  inside.area = team_.reserve(inside.layout.area_bytes(), door_of(kind.group), true);
  if (inside.area.empty()) return false;
  team_.begin(std::move(inside));
  return true;
}

// Ranks that agree need no board. Those that do not agree do not get on with it, and then it starts
// there, too.
HostPath::Run HostPath::run(const HostKind& kind, const HostCall& call,
                            const std::function<Operation()>& whole,
                            const std::atomic<bool>& wanted, core::TimePoint until,
                            core::Status& outcome) {
  if (!begin(kind, call, whole)) return Run::kNoSpace;
  if (std::optional<core::Status> status = team_.drive(wanted, until)) {
    board_.pass(kind.group, call.sequence);
    outcome = *std::move(status);
    return Run::kOver;
  }
  const Key key{kind.group, call.sequence};
  Operation operation = whole();
  std::string title = operation.title;
  const HostLayout layout = layout_of(operation);
  start_outside(std::move(operation), layout, team_.driven_area(), [](int) {});
  team_.hand_over(std::move(title),
                  [this, key](const core::Status& status) { inside_ended(key, status); });
  repeat_failure(key);
  return Run::kGoesOn;
}

// What a rank may send early is so little that messages cost more than bytes: one rank of each host
// then has all of it.
HostLayout HostPath::layout_of(const Operation& operation) const {
  const auto own = std::ranges::find(operation.members, world_.rank);
  const std::uint64_t element = core::size_of(operation.type);
  HostLayout layout = lay_out(hosts_of(world_, operation.members),
                              static_cast<int>(own - operation.members.begin()),
                              operation.buffer.size() / element, element, largest_area_);
  const int stripes = std::exchange(layout.stripes, 1);
  const bool is_little = (layout.hosts.size() - 1) * layout.bytes <= kEarlyBytes;
  if (!is_little || !takes_one_hop(layout)) layout.stripes = stripes;
  return layout;
}

// As all ranks see it: by the largest stripe that an owner has, and the room that all have.
bool HostPath::takes_one_hop(const HostLayout& layout) const {
  if (!layout.crosses() || layout.pieces != 1) return false;
  if (layout.area_bytes() + host_one_hop_scratch(layout) > largest_area_) return false;
  return allreduces_.choose(layout.stripe(0, 0).bytes, static_cast<int>(layout.hosts.size())) ==
         core::AllreduceAlgorithm::kOneHop;
}

Schedule HostPath::schedule_of(const HostLayout& layout) const {
  const std::uint64_t chunk =
      default_chunk_bytes(layout.piece_bytes, static_cast<int>(layout.hosts.size()), flows_);
  return takes_one_hop(layout) ? host_one_hop(layout, chunk) : host_ring(layout, chunk);
}

HostOperation HostPath::inside_half(const Operation& operation, std::span<const std::byte> input) {
  HostOperation inside;
  inside.group = operation.group;
  inside.sequence = operation.sequence;
  inside.fingerprint = operation.fingerprint;
  inside.title = operation.title;
  inside.description = operation.description;
  inside.layout = layout_of(operation);
  inside.members = operation.members;
  inside.input = input;
  inside.output = operation.buffer;
  inside.type = operation.type;
  inside.reduction = operation.reduction;
  const Key key{operation.group, operation.sequence};
  inside.done = [this, key](const core::Status& status) { inside_ended(key, status); };
  return inside;
}

// On one host, too: what ranks of other operations say reaches the board.
void HostPath::start_outside(Operation operation, const HostLayout& layout,
                             std::span<std::byte> area, const std::function<void(int)>& meet) {
  const Key key{operation.group, operation.sequence};
  operation.schedule = schedule_of(layout);
  operation.early = operation.early && layout.crosses() && may_go_early(operation.schedule);
  for_each_peer(operation, meet);
  {
    const std::lock_guard lock(mutex_);
    Halves& halves = halves_[key];
    halves.done = std::move(operation.done);
    if (!layout.crosses()) halves.gates = layout.pieces;
  }
  operation.buffer = area.first(layout.area_bytes());
  operation.scratch = area.subspan(layout.area_bytes());
  operation.held = true;
  operation.piece_done = [this, key](std::uint32_t piece) {
    team_.piece_done(key.first, key.second, piece);
  };
  operation.done = [this, key](const core::Status& status) { outside_ended(key, status); };
  board_.start(std::move(operation));
}

// The board may fail its half at any time: before the inner half has started, that one does not
// start; while it does, the failure is repeated, for the team did not know the operation yet.
void HostPath::start_inside(HostOperation inside) {
  const Key key{inside.group, inside.sequence};
  {
    std::unique_lock lock(mutex_);
    Halves& halves = halves_[key];
    if (!halves.outside) {
      halves.inside = false;
      team_.give_back(inside.area);
      return finish(lock, key);
    }
  }
  team_.start(std::move(inside));
  repeat_failure(key);
}

void HostPath::repeat_failure(const Key& key) {
  core::Status outside;
  {
    const std::lock_guard lock(mutex_);
    const auto found = halves_.find(key);
    if (found != halves_.end() && !found->second.outside) outside = found->second.status;
  }
  if (!outside) fail_inside(key, outside.error());
}

void HostPath::fail_inside(const Key& key, const core::Error& error) {
  team_.transfers_ended(key.first, key.second);
  team_.fail(key.first, key.second, error);
}

void HostPath::inside_ended(const Key& key, const core::Status& status) {
  std::uint32_t gates = 0;
  {
    std::unique_lock lock(mutex_);
    Halves& halves = halves_[key];
    halves.inside = false;
    if (halves.status) halves.status = status;
    if (status && halves.outside) gates = halves.gates;
    finish(lock, key);
  }
  if (gates > 0) board_.open_gates(key.first, key.second, gates);
}

void HostPath::outside_ended(const Key& key, const core::Status& status) {
  {
    std::unique_lock lock(mutex_);
    Halves& halves = halves_[key];
    halves.outside = false;
    if (halves.status) halves.status = status;
    finish(lock, key);
  }
  if (!status) fail_inside(key, status.error());
}

void HostPath::finish(std::unique_lock<std::mutex>& lock, const Key& key) {
  const auto found = halves_.find(key);
  if (found->second.inside || found->second.outside) return;
  const Halves ended = std::move(found->second);
  halves_.erase(found);
  lock.unlock();
  ended.done(ended.status);
}

void HostPath::fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = halves_.find({group, sequence});
    // What the board still works on ends here when it has ended there.
    if (found == halves_.end() || found->second.outside) return;
  }
  team_.fail(group, sequence, error);
}

}  // namespace fasthorovod::ops
