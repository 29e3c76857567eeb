#include "ops/submission_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "compression/codec_table.h"

namespace fasthorovod::ops {
namespace {

using core::OpKind;
using core::Request;

constexpr std::size_t kMaxNameBytes = 4096;

core::Error refuse(const Request& request, const std::string& why) {
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("{} of '{}': {}", core::to_string(request.op), request.name, why)};
}

core::Status check_shape(const Request& request) {
  if (!core::is_valid_shape(request.shape)) {
    return refuse(
        request,
        fmt::format("the shape [{}] can not be: at most {} dimensions, none negative, at most {} "
                    "elements",
                    fmt::join(request.shape, ", "), core::kMaxDimensions, core::kMaxElements));
  }
  if (request.op == OpKind::kAllgather && request.shape.empty()) {
    return refuse(request, "a scalar can not be gathered; give it one dimension");
  }
  return {};
}

core::Status check_reduction(const Request& request) {
  if (request.op != OpKind::kAllreduce || core::has_reduction(request.type, request.reduction)) {
    return {};
  }
  return refuse(request, fmt::format("{} has no {}", core::to_string(request.type),
                                     core::to_string(request.reduction)));
}

core::Status check_codec(const Request& request, const ProcessSets& sets) {
  if (!request.codec.encodes()) return {};
  const compression::CodecInfo& codec = compression::codec_info(request.codec.id);
  if (core::Status status = compression::check(request.codec); !status) {
    return refuse(request, status.error().message);
  }
  if (request.op != OpKind::kAllreduce) {
    return refuse(request, fmt::format("the codec {} is for all-reduces only", codec.name));
  }
  if (request.type != core::DataType::kFloat32) {
    return refuse(request, fmt::format("the codec {} encodes float32, not {}", codec.name,
                                       core::to_string(request.type)));
  }
  if (request.reduction != core::Reduction::kSum &&
      request.reduction != core::Reduction::kAverage) {
    return refuse(request, fmt::format("the codec {} is for sum and average, not {}", codec.name,
                                       core::to_string(request.reduction)));
  }
  const GroupPtr set = sets.find(request.group);
  const int ranks = set == nullptr ? 0 : set->size();
  if (ranks > codec.most_ranks) {
    return refuse(request, fmt::format("the codec {} adds up at most {} ranks, here are {}",
                                       codec.name, codec.most_ranks, ranks));
  }
  return {};
}

core::Status check_memory(const Submission& submission) {
  const Request& request = submission.request;
  if (request.op == OpKind::kBarrier || request.op == OpKind::kJoin) return {};
  if (core::changes_groups(request.op)) return {};
  const bool empty = core::element_count(request.shape) == 0;
  if (request.op == OpKind::kAllgather && !submission.allocate_output) {
    return refuse(request, "nothing to allocate the result with");
  }
  if (!empty && request.op != OpKind::kAllgather && submission.output == nullptr) {
    return refuse(request, "no memory for the result");
  }
  if (!empty && request.op != OpKind::kBroadcast && submission.input == nullptr) {
    return refuse(request, "no input");
  }
  return {};
}

// Whether these ranks can be a set is for all ranks to hear, from the coordinator; here only what
// it would take for a broken rank.
core::Status check_change(const Request& request) {
  if (request.group == core::kWorldGroup && core::is_ascending(request.members)) return {};
  return refuse(request, fmt::format("the ranks [{}] are not in ascending order, each once",
                                     fmt::join(request.members, ", ")));
}

core::Status check_group(const Request& request, const ProcessSets& sets) {
  if (core::changes_groups(request.op)) return check_change(request);
  const core::Result<GroupPtr> set = sets.own(request.group);
  if (!set) return refuse(request, set.error().message);
  if (request.op != OpKind::kBroadcast || (*set)->position_of(request.root) >= 0) return {};
  return refuse(request, fmt::format("root {} is not one of the ranks [{}]", request.root,
                                     fmt::join((*set)->members, ", ")));
}

}  // namespace

core::Status check(const Submission& submission, const ProcessSets& sets) {
  const Request& request = submission.request;
  if (request.name.empty() || request.name.size() > kMaxNameBytes) {
    return refuse(request, fmt::format("a name has 1 to {} bytes, this one has {}", kMaxNameBytes,
                                       request.name.size()));
  }
  if (core::Status status = check_group(request, sets); !status) return status;
  if (core::Status status = check_reduction(request); !status) return status;
  if (core::Status status = check_codec(request, sets); !status) return status;
  if (core::Status status = check_shape(request); !status) return status;
  return check_memory(submission);
}

}  // namespace fasthorovod::ops
