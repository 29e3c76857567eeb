#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <string>
#include <utility>

#include "torch_binding/c10d/backend.h"

namespace fasthorovod::torch_binding {
namespace {

using c10d::OpType;

// Tags of the monitored barrier; torch's are not negative.
constexpr std::uint32_t kArrivalTag = 0x80000000U;
constexpr std::uint32_t kReleaseTag = 0x80000001U;

}  // namespace

c10::intrusive_ptr<c10d::Work> EngineBackend::barrier(const c10d::BarrierOptions& options) {
  CallBuilder builder(OpType::BARRIER, "fasthorovod:barrier", limit(options.timeout));
  ops::OrderedOperation operation;
  operation.kind = ops::OrderedKind::kBarrier;
  operation.title = "barrier";
  builder.operations.push_back(std::move(operation));
  return submit(std::move(builder));
}

// Rank 0 hears from every rank before it answers any, so it can say who did not come. The texts are
// those of gloo, which programs look for.
void EngineBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  check_open();
  const auto time_limit =
      options.timeout < std::chrono::milliseconds(0) ? time_limit_.load() : options.timeout;
  if (rank_ != 0) return pass_barrier(time_limit);
  const std::string after = " in " + std::to_string(time_limit.count()) + " ms";
  TORCH_CHECK_WITH(DistBackendError, time_limit.count() > 0 || size_ == 1,
                   "Rank 0 timed out in monitoredBarrier", after);
  const std::vector<int> absent = absent_ranks(time_limit, wait_all_ranks);
  TORCH_CHECK_WITH(DistBackendError, absent.empty(), absent.size() > 1 ? "Ranks " : "Rank ",
                   c10::Join(", ", absent), " failed to pass monitoredBarrier", after);
  std::vector<WorkPtr> releases;
  for (int rank = 1; rank < size_; ++rank) {
    releases.push_back(submit_empty(rank, kReleaseTag, time_limit, true));
  }
  for (const WorkPtr& release : releases) release->wait();
}

void EngineBackend::pass_barrier(std::chrono::milliseconds time_limit) {
  const auto message = submit_empty(0, kArrivalTag, time_limit, true);
  try {
    submit_empty(0, kReleaseTag, time_limit, false)->wait();
    message->wait();
  } catch (const std::exception& failure) {
    TORCH_CHECK_WITH(DistBackendError, false, "Rank ", rank_,
                     " successfully reached monitoredBarrier, but received errors while waiting "
                     "for send/recv from rank 0: ",
                     failure.what());
  }
}

std::vector<int> EngineBackend::absent_ranks(std::chrono::milliseconds time_limit, bool all) {
  std::vector<WorkPtr> arrivals;
  for (int rank = 1; rank < size_; ++rank) {
    arrivals.push_back(submit_empty(rank, kArrivalTag, time_limit, false));
  }
  std::vector<int> absent;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    try {
      arrivals[i]->wait();
    } catch (const std::exception&) {
      absent.push_back(static_cast<int>(i) + 1);
      if (!all) break;
    }
  }
  return absent;
}

c10::intrusive_ptr<c10d::Work> EngineBackend::submit_empty(int peer, std::uint32_t tag,
                                                           std::chrono::milliseconds time_limit,
                                                           bool sends) {
  CallBuilder builder(sends ? OpType::SEND : OpType::RECV,
                      sends ? "fasthorovod:send" : "fasthorovod:recv",
                      std::max(time_limit, std::chrono::milliseconds(1)));
  ops::Message message;
  message.peer = peer;
  message.tag = tag;
  message.title = "monitored barrier";
  return submit_message(std::move(builder), std::move(message), sends);
}

}  // namespace fasthorovod::torch_binding
