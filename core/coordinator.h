// The coordinator: rank 0's pure state machine that decides what runs, in which order. No I/O,
// thread or clock of its own: messages and the time come in, plans come out. Thread: owner (rank
// 0's engine thread).
//
// Life of a request. A rank submits a tensor and tells the coordinator (submit). When every rank of
// the request's group that has not joined has submitted the name (and, for a bundle, all its
// members), the coordinator checks that they agree and puts the operation in the ready list.
// take_plan() fuses what is ready into items, numbers them and returns one Plan, which the engine
// sends to every rank. All ranks start the items of all plans in that one order.
//
// Rules:
//   * an item is emitted only when every rank of its group that has not joined submitted it; never
//   sooner, exactly once;
//   * groups are apart: the same name in two of them is two tensors, nothing is fused across them,
//   and nothing waits for a rank that is not in the group;
//   * groups come and go by operations that all ranks of the world submit; their numbers are given
//   here and never used again. A request in a group that is gone fails, one in a group that never
//   was, or that the rank is not in, is an error of that rank;
//   * any disagreement becomes an item with an error that names the tensor, what differs, and who
//   has what;
//     nothing moves for it, and the name may be used again at once;
//   * a rank that has joined takes part in all-reduces with zeros; another operation that it did
//     not submit fails;
//   * two submissions of one name by one rank before it ran are an error of that rank
//   (kDuplicateName), named;
//   * after a rank left (shutdown), whatever still needs it, and whatever comes later in its
//   groups, fails with kShutdown;
//   * the response cache changes only through Plan::cache_changes, so all ranks hold the same
//   cache. A position is
//     reused only when every rank has applied the plan that freed it: a bit never changes its
//     meaning in flight.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/plan.h"
#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::core {

struct CoordinatorOptions {
  int size = 1;
  std::uint64_t fusion_threshold = 64ull << 20;  // bytes; 0: every tensor (or bundle) alone
  std::uint32_t cache_capacity = 4096;           // 0: no cache
  Duration fusion_wait = std::chrono::milliseconds(1);
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  Duration stall_limit = std::chrono::seconds(600);   // 0: never
};

/// What a rank tells the coordinator at once: everything it submitted since its last message.
struct Submissions {
  std::uint64_t plans_applied = 0;    // the number of the last plan this rank applied
  std::vector<std::uint64_t> cached;  // bit vector: the requests stored at these cache positions
  std::vector<Request> requests;      // the others, in submission order
  // Said once per join: after what is in this message, this rank has no more data until everybody
  // joined.
  bool joined = false;
};

class Coordinator final {
 public:
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Takes one rank's message. An error is the sender's fault (a request no healthy rank sends):
  /// the caller treats the rank as broken.
  Status submit(int rank, const Submissions& submissions, TimePoint now);

  /// `rank` shut down in good order.
  void leave(int rank, TimePoint now);

  /// What may run now, or nothing. `idle`: nothing planned earlier is still running here. While
  /// something runs, or while more tensors of the same groups are on their way (submitted by some
  /// ranks, not by all) and less than the threshold is ready, the coordinator waits up to
  /// fusion_wait since the first became ready, to fuse more.
  std::optional<Plan> take_plan(TimePoint now, bool idle);

  /// When take_plan or take_warnings may have something without a new message; nothing to wait for:
  /// no value.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// Sentences about tensors that wait longer than the warning time, each naming the ranks that are
  /// missing. A tensor is warned about again each time the waiting time doubles. One past the limit
  /// becomes an item with the error kStalled in the next plan, whose culprit is the lowest missing
  /// rank.
  std::vector<std::string> take_warnings(TimePoint now);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fasthorovod::core
